# SPDX-License-Identifier: Apache-2.0
"""Compute the changes that turn the current state into the desired state, and print them as a diff. Pure.

In the diff, `+` creates, `~` changes with the values before and after, `-` removes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.apply import ApplyError
from gateway.apply.document import SecretRef
from gateway.apply.order import in_order
from gateway.apply.profiles import needed_credential
from gateway.apply.state import (
    ANCHORS,
    CONTAINERS,
    Action,
    Address,
    Change,
    FieldChange,
    Kind,
    Resource,
    State,
)


@dataclass(frozen=True, slots=True)
class Kept:
    """A resource that the file does not declare and that is kept, with the reason."""

    address: Address
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes in the order in which they are made, and the undeclared resources that are kept."""

    changes: tuple[Change, ...] = ()
    kept: tuple[Kept, ...] = ()


class MissingObjects(ApplyError):
    """The file names objects that do not exist and that it cannot create."""

    def __init__(self, missing: list[Address]) -> None:
        super().__init__(
            "these objects do not exist, and apply does not create them: "
            + ", ".join(str(each) for each in missing)
            + ". Create them first, or remove them from the file."
        )
        self.missing = missing


def plan(desired: State, present: State, *, prune: bool = False, prune_containers: bool = False) -> Plan:
    """Return the changes that turn the current state into the desired state.

    Fields and resources that the file does not contain stay. With `prune`, resources that are missing in a list of the
    file are removed. Warehouses and namespaces are removed only if `prune_containers` is set too. Raises
    MissingObjects.
    """
    named = [each for each in desired.of_kind(*Kind) if each.address.kind in ANCHORS or each.reference]
    missing = [each.address for each in named if each.address not in present.resources]
    if missing:
        raise MissingObjects(missing)
    changes: list[Change] = []
    for resource in desired.resources.values():
        found = present.resources.get(resource.address)
        if found is None:
            changes.append(_creation(resource))
        elif fields := _field_changes(resource, found, prune=prune):
            changes.append(Change(Action.UPDATE, resource.address, fields, resource))
    removed, kept = _removals(desired, present, prune=prune, prune_containers=prune_containers)
    changes += (Change(Action.REMOVE, address) for address in removed)
    return Plan(in_order(changes, desired, present), tuple(sorted(kept, key=lambda each: str(each.address))))


def _creation(resource: Resource) -> Change:
    fields = tuple(FieldChange(name, None, value) for name, value in resource.fields.items() if value is not None)
    return Change(Action.CREATE, resource.address, fields, resource)


def _field_changes(desired: Resource, present: Resource, *, prune: bool) -> tuple[FieldChange, ...]:
    """Return the fields of the file that differ. With `prune`, also return current fields under an open prefix that the
    file lacks.
    """
    found = [
        FieldChange(name, present.fields.get(name), value)
        for name, value in desired.fields.items()
        if present.fields.get(name) != value
    ]
    if prune:
        found += [
            FieldChange(name, value, None)
            for name, value in present.fields.items()
            if name.startswith(desired.open_prefixes) and name not in desired.fields and value is not None
        ]
    return tuple(sorted(found, key=lambda each: each.name))


def _removals(
    desired: State, present: State, *, prune: bool, prune_containers: bool
) -> tuple[list[Address], list[Kept]]:
    """Return (addresses to remove, resources to keep) for the current resources that are missing in a complete list of
    the file.

    Resources below a removed one are removed with it and not listed. Only namespaces are listed, because the server
    removes no namespace that contains another.
    """
    removed: set[Address] = set()
    kept: list[Kept] = []
    for resource in present.of_kind(*Kind):
        address = resource.address
        if address in desired.resources or address.parent is None or address.kind in ANCHORS:
            continue
        below_removed = any(each in removed for each in address.ancestors())
        if below_removed and address.kind not in (*CONTAINERS, Kind.BINDING):
            continue
        if not below_removed and not desired.has_scope(address.kind, address.parent):
            continue
        if (reason := _reason_to_keep(resource, prune=prune, containers=prune_containers)) is not None:
            kept.append(Kept(address, reason))
        elif _contains(address, desired.resources):
            kept.append(Kept(address, "the file declares objects within it"))
        else:
            removed.add(address)
    holding = [each for each in removed if _contains(each, [other.address for other in kept])]
    kept += (Kept(each, "it contains objects that stay") for each in holding)
    return [each for each in removed if each not in holding], kept


def _contains(address: Address, others: Iterable[Address]) -> bool:
    return any(address in each.ancestors() for each in others)


def _reason_to_keep(resource: Resource, *, prune: bool, containers: bool) -> str | None:
    if resource.keep is not None:
        return resource.keep
    if not prune:
        return "it is not in the file; --prune removes it"
    if resource.address.kind in CONTAINERS and not containers:
        return "it is not in the file; --prune --prune-containers removes it if it is empty"
    return None


def plan_lines(plan: Plan, *, prune: bool) -> Iterator[str]:
    """Yield the lines of a printed plan. Without `prune`, undeclared objects are only counted."""
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
    """Return the first line of a printed change, without its fields."""
    return f"{change.action} {_printable(str(change.address))}"


def _references(change: Change) -> Iterator[str]:
    """Yield a line for each secret that the change reads on this machine and sends to the gateway."""
    for name, value in (needed_credential(change) or {}).items():
        if isinstance(value, SecretRef):
            place = f"variable {value.env}" if value.env is not None else f"file {value.file} of --secrets-dir"
            yield f"credential.{name}: read from the {place}"


def _is_shown(change: Change, field: FieldChange) -> bool:
    """Return False for those fields of a new warehouse's storage that the file leaves at their defaults."""
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
