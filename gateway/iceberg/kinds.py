# SPDX-License-Identifier: Apache-2.0
"""Classify the updates of a commit by the kinds of change that authorization distinguishes, such as appends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from gateway.iceberg.codec import Long
from gateway.iceberg.locations import PATH_PROPERTIES
from gateway.iceberg.metadata import TableMetadata
from gateway.iceberg.requirements import AssertRefSnapshotId
from gateway.iceberg.snapshots import MAIN
from gateway.iceberg.updates import (
    AddEncryptionKey,
    AddSnapshot,
    AssignUuid,
    RemoveEncryptionKey,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    TableUpdate,
    UpgradeFormatVersion,
    ViewUpdate,
)

RUNS_AS: Final = "trino.run-as-owner"
"""The view property with the user whose rights Trino uses to read the tables of the view."""

PRIVILEGED_PROPERTIES: Final = frozenset({*PATH_PROPERTIES, "gc.enabled", "owner", RUNS_AS})
"""Properties that need more than the right to alter.

They move files, prevent their cleanup, or name the user whose rights an engine uses.
"""


class UpdateKind(StrEnum):
    """A kind of change that authorization distinguishes. A commit usually has several."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    DELETE = "delete"
    REPLACE = "replace"
    REFS = "refs"
    MAINTENANCE = "maintenance"
    ALTER = "alter"
    PRIVILEGED = "privileged"


_MAINTENANCE = (
    RemoveSnapshots,
    SetStatistics,
    RemoveStatistics,
    SetPartitionStatistics,
    RemovePartitionStatistics,
    RemovePartitionSpecs,
    RemoveSchemas,
)
_PRIVILEGED = (AssignUuid, UpgradeFormatVersion, SetLocation, AddEncryptionKey, RemoveEncryptionKey)
_OPERATIONS: Final[Mapping[str | None, UpdateKind]] = {
    "append": UpdateKind.APPEND,
    "overwrite": UpdateKind.OVERWRITE,
    "delete": UpdateKind.DELETE,
    "replace": UpdateKind.REPLACE,
}


class _AddedSnapshot(msgspec.Struct, rename="kebab"):
    snapshot_id: Long | None = None
    parent_snapshot_id: Long | None = None
    summary: dict[str, object] | None = None


def update_kinds(
    updates: Sequence[TableUpdate | ViewUpdate], base: TableMetadata | None = None
) -> frozenset[UpdateKind]:
    """Return the kinds of change in a commit.

    A snapshot has the kind that its summary declares. A missing or unknown declaration counts as overwrite. So does an
    append whose summary reports removed files or rows. If `base` is given, moving an existing ref to an added snapshot
    is also an overwrite, because existing rows would disappear. It is none if the snapshot's parent is the current
    snapshot of the ref. Removing `main`, or moving it to a snapshot that this commit did not add, is an overwrite.
    """
    kinds: set[UpdateKind] = set()
    added: dict[int, _AddedSnapshot] = {}
    heads: dict[str, int | None] = {n: r.snapshot_id for n, r in base.refs.items()} if base is not None else {}
    for update in updates:
        match update:
            case AddSnapshot():
                snapshot = _added(update)
                added[snapshot.snapshot_id or 0] = snapshot
                kinds.add(_declared(snapshot))
            case SetSnapshotRef():
                kinds |= _ref_kinds(update, added, heads, known=base is not None)
                heads[update.ref_name] = update.snapshot_id
            case RemoveSnapshotRef():
                kinds.add(UpdateKind.OVERWRITE if update.ref_name == MAIN else UpdateKind.REFS)
                heads.pop(update.ref_name, None)
            case SetProperties() | RemoveProperties():
                names = update.updates if isinstance(update, SetProperties) else update.removals
                kinds.add(UpdateKind.ALTER)
                if not PRIVILEGED_PROPERTIES.isdisjoint(names):
                    kinds.add(UpdateKind.PRIVILEGED)
            case _ if isinstance(update, _PRIVILEGED):
                kinds.add(UpdateKind.PRIVILEGED)
            case _:
                kinds.add(UpdateKind.MAINTENANCE if isinstance(update, _MAINTENANCE) else UpdateKind.ALTER)
    return frozenset(kinds)


def appends_to_main(updates: Sequence[TableUpdate | ViewUpdate], requirements: Sequence[object]) -> bool:
    """Return True if a commit only adds one snapshot that appends to the main branch.

    A requirement must assert the current snapshot of main, and this must be the parent of the added one. Otherwise the
    commit could remove rows. The added snapshot must declare that it appends, and that it removes nothing.
    """
    if len(updates) != 2 or not isinstance(updates[0], AddSnapshot) or not isinstance(updates[1], SetSnapshotRef):
        return False
    added, moved = _added(updates[0]), updates[1]
    if _declared(added) is not UpdateKind.APPEND or (moved.ref_name, moved.type) != (MAIN, "branch"):
        return False
    if added.snapshot_id is None or moved.snapshot_id != added.snapshot_id:
        return False
    heads = [each for each in requirements if isinstance(each, AssertRefSnapshotId) and each.ref == MAIN]
    return len(heads) == 1 and heads[0].snapshot_id == added.parent_snapshot_id


def target_refs(updates: Sequence[TableUpdate | ViewUpdate]) -> frozenset[str]:
    """Return the names of the branches and tags that a commit creates, moves or removes."""
    return frozenset(u.ref_name for u in updates if isinstance(u, SetSnapshotRef | RemoveSnapshotRef))


def _ref_kinds(
    update: SetSnapshotRef, added: Mapping[int, _AddedSnapshot], heads: Mapping[str, int | None], *, known: bool
) -> set[UpdateKind]:
    kinds = set() if update.ref_name == MAIN else {UpdateKind.REFS}
    snapshot = added.get(update.snapshot_id)
    if snapshot is None:
        if update.ref_name == MAIN and heads.get(MAIN) != update.snapshot_id:
            kinds.add(UpdateKind.OVERWRITE)
        elif update.ref_name == MAIN:
            kinds.add(UpdateKind.REFS)
    elif known and update.ref_name in heads and snapshot.parent_snapshot_id != heads[update.ref_name]:
        kinds.add(UpdateKind.OVERWRITE)
    return kinds


def _added(update: AddSnapshot) -> _AddedSnapshot:
    try:
        return msgspec.json.decode(update.snapshot, type=_AddedSnapshot)
    except msgspec.MsgspecError:
        return _AddedSnapshot()  # Malformed: counts as overwrite here, and applying it raises the error.


def _declared(snapshot: _AddedSnapshot) -> UpdateKind:
    summary = snapshot.summary or {}
    operation = summary.get("operation")
    kind = _OPERATIONS.get(operation if isinstance(operation, str) else None, UpdateKind.OVERWRITE)
    removed = any(summary.get(name) not in (None, "0") for name in ("deleted-data-files", "deleted-records"))
    return UpdateKind.OVERWRITE if kind is UpdateKind.APPEND and removed else kind
