# SPDX-License-Identifier: Apache-2.0
"""Compute digests of proposed changes, by which the ticket of a change is found again.

A change that needs approval gets a ticket with its digest. If the statement is run a second time, its change has the
same digest, so the approved ticket applies to it.

A digest covers the principal, the object, the kind of change, the normalised updates, and the parts of the current
metadata on which a schema change depends. Values that an engine chooses for each run are left out: snapshot ids, times,
locations of new files, UUIDs. So two appends of one principal to one table have the same digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from gateway.verification.port import ChangeKind, ProposedChange

_BASE: Final = (
    "table-uuid",
    "view-uuid",
    "format-version",
    "current-schema-id",
    "last-column-id",
    "default-spec-id",
    "last-partition-id",
    "default-sort-order-id",
    "current-version-id",
)
"""Members of the current metadata that a change rests on. A view version gives the view's schema."""

_STRUCTURE: Final = (
    "format-version",
    "schemas",
    "current-schema-id",
    "last-column-id",
    "partition-specs",
    "default-spec-id",
    "sort-orders",
    "default-sort-order-id",
    "properties",
)
"""Members of the first metadata that state what a new table or view is. The location is chosen anew for each run."""

_NEW_FILES: Final = ("set-statistics", "set-partition-statistics")


def normalised_change(change: ProposedChange) -> Mapping[str, Any]:
    """Return those parts of a change that are equal in two runs of one statement, as JSON values.

    An object without an id is identified by its namespace and name. The request id is not part of it.
    """
    creates = change.kind is ChangeKind.CREATE
    return {
        "kind": change.kind.value,
        "object": [change.object_type, change.object_id],
        "warehouse": change.warehouse_id,
        "name": [list(change.namespace), change.name],
        "principal": change.principal,
        "updates": normalise_updates(change.updates, creates=creates),
        "base": _members(change.before, _BASE),
        "new": _first_state(change.after) if creates else {},
        "properties": dict(change.properties),
        "destination": None if change.destination is None else list(change.destination),
    }


def digest_of(normalised: Mapping[str, Any], *, panel_version: str) -> str:
    """Return the SHA-256 of a `normalised_change` in hexadecimal digits.

    `panel_version` identifies the configuration of the verifiers: an approval ends when they are changed.
    """
    # `order` sorts the members at every level, so that equal changes have equal text.
    text = msgspec.json.encode([panel_version, normalised], order="deterministic")
    return hashlib.sha256(text).hexdigest()


def normalise_updates(updates: Sequence[Mapping[str, Any]], *, creates: bool = False) -> tuple[Mapping[str, Any], ...]:
    """Return the updates without values that differ between two runs of one statement. The order is kept.

    `creates` is True for the updates that create an object: its UUID and its location are then new values.
    """
    added = frozenset(
        update["snapshot"].get("snapshot-id")
        for update in updates
        if update.get("action") == "add-snapshot" and isinstance(update.get("snapshot"), Mapping)
    )
    return tuple(_normalise(update, added, creates) for update in updates)


def _normalise(update: Mapping[str, Any], added: frozenset[Any], creates: bool) -> Mapping[str, Any]:
    action = update.get("action")
    if action == "add-snapshot":
        # Ids, times, files and counts of rows differ per run. The operation and the schema are what remains.
        snapshot = update.get("snapshot") or {}
        operation = (snapshot.get("summary") or {}).get("operation")
        return {"action": action, "operation": operation, "schema-id": snapshot.get("schema-id")}
    if action == "add-view-version":
        version = update.get("view-version") or {}
        return {"action": action, "view-version": _without(version, {"version-id", "timestamp-ms", "summary"})}
    if creates and action in ("assign-uuid", "set-location"):
        return {"action": action}
    if action in _NEW_FILES:
        update = _without(update, {"statistics", "partition-statistics"})
    if update.get("snapshot-id") in added:
        update = _without(update, {"snapshot-id"})
    return update


def _first_state(document: msgspec.Raw | None) -> Mapping[str, Any]:
    """Return the structure of a new table or view. For a view it includes the representations of its first version."""
    state = dict(_members(document, (*_STRUCTURE, "versions")))
    if "versions" in state:
        state["versions"] = [
            _without(version, {"version-id", "timestamp-ms", "summary"}) for version in state["versions"]
        ]
    return state


def _members(document: msgspec.Raw | None, names: Iterable[str]) -> Mapping[str, Any]:
    """Return the fields `names` of a metadata document. Other fields, which may be large, are not decoded."""
    if document is None:
        return {}
    found = msgspec.json.decode(document, type=dict[str, msgspec.Raw])
    return {name: msgspec.json.decode(found[name]) for name in names if name in found}


def _without(members: Mapping[str, Any], left_out: Iterable[str]) -> Mapping[str, Any]:
    return {key: value for key, value in members.items() if key not in left_out}
