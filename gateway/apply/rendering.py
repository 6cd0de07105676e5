# SPDX-License-Identifier: Apache-2.0
"""Print a plan as a diff: `+` creates, `~` changes with the values before and after, `-` removes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from gateway.apply.planner import Action, Change, FieldChange, Plan


def plan_lines(plan: Plan, *, prune: bool) -> Iterator[str]:
    """Yield the lines of a plan. Without `prune`, undeclared objects are counted and not listed."""
    for change in plan.changes:
        yield change_line(change)
        yield from (f"    {_field_text(change.action, each)}" for each in change.fields if _is_shown(change, each))
    if prune:
        yield from (_printable(f"  {each.address} stays: {each.reason}") for each in plan.kept)
    elif plan.kept:
        yield f"Not in the file, not changed: {len(plan.kept)}. --plan --prune lists them, and what it removes."
    if not plan.changes:
        yield "No changes. The catalog agrees with the file."
        return
    counts = {action: sum(each.action is action for each in plan.changes) for action in Action}
    yield (
        f"Plan: {counts[Action.CREATE]} to create, {counts[Action.UPDATE]} to change, "
        f"{counts[Action.REMOVE]} to remove."
    )


def change_line(change: Change) -> str:
    """Return the line of a change without its fields."""
    return f"{change.action} {_printable(str(change.address))}"


def _is_shown(change: Change, field: FieldChange) -> bool:
    """Return False for fields of a new warehouse's storage that the file leaves at their defaults."""
    if change.action is not Action.CREATE or not field.name.startswith("storage.") or change.desired is None:
        return True
    return field.name.removeprefix("storage.") in change.desired.spec.storage


def _field_text(action: Action, field: FieldChange) -> str:
    name = _printable(field.name)
    if action is Action.CREATE:
        return f"{name}: {_text(field.after)}"
    return f"{name}: {_text(field.before)} -> {_text(field.after)}"


def _text(value: Any) -> str:
    """Return a value as JSON in ASCII, so that it cannot contain control characters."""
    if value is None:
        return "(none)"
    return value.isoformat() if isinstance(value, datetime) else json.dumps(value)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
