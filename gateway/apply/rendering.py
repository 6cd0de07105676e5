# SPDX-License-Identifier: Apache-2.0
"""Print a plan as a diff: `+` creates, `~` changes with the values before and after, `-` removes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from gateway.apply.document import SecretRef
from gateway.apply.planner import Plan
from gateway.apply.profiles import needed_credential
from gateway.apply.state import Action, Change, FieldChange, Kind


def plan_lines(plan: Plan, *, prune: bool) -> Iterator[str]:
    """Yield the lines of a plan. Without `prune`, undeclared objects are counted and not listed."""
    for change in plan.changes:
        yield change_line(change)
        yield from (f"    {_field_text(change, each)}" for each in change.fields if _is_shown(change, each))
        yield from (f"    {_printable(line)}" for line in _references(change))
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


def _references(change: Change) -> Iterator[str]:
    """Yield a line for each secret that the change reads on this machine and sends to the gateway."""
    for name, value in (needed_credential(change) or {}).items():
        if isinstance(value, SecretRef):
            place = f"variable {value.env}" if value.env is not None else f"file {value.file} of --secrets-dir"
            yield f"credential.{name}: read from the {place}"


def _is_shown(change: Change, field: FieldChange) -> bool:
    """Return False for fields of a new warehouse's storage that the file leaves at their defaults."""
    if change.action is not Action.CREATE or not field.name.startswith("storage.") or change.desired is None:
        return True
    return field.name.removeprefix("storage.") in change.desired.spec.storage


def _field_text(change: Change, field: FieldChange) -> str:
    name = _printable(field.name)
    # Values of mapping tables can be confidential, and plans are printed into logs.
    shown = _count if change.address.kind is Kind.MAPPING_ENTRY else _text
    if change.action is Action.CREATE:
        return f"{name}: {shown(field.after)}"
    return f"{name}: {shown(field.before)} -> {shown(field.after)}"


def _count(values: Any) -> str:
    return f"({len(values)} values)"


def _text(value: Any) -> str:
    """Return a value as JSON in ASCII, so that it cannot contain control characters."""
    if value is None:
        return "(none)"
    return value.isoformat() if isinstance(value, datetime) else json.dumps(value)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)
