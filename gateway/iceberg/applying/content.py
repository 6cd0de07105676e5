# SPDX-License-Identifier: Apache-2.0
"""Updates of a table's content and of the data beside it: snapshots, refs, statistics, properties, encryption keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gateway.iceberg import codec
from gateway.iceberg.applying.builder import TableBuilder
from gateway.iceberg.errors import BadRequestException, InvalidTableUpdate, RetryableValidation
from gateway.iceberg.metadata import NO_SNAPSHOT, ROW_LINEAGE_FORMAT_VERSION
from gateway.iceberg.properties import check_removable, check_settable
from gateway.iceberg.snapshots import (
    MAIN,
    EncryptedKey,
    PartitionStatisticsFile,
    Snapshot,
    SnapshotRef,
    StatisticsFile,
    check_retention,
    log_entry,
    log_time,
    read_snapshot,
)
from gateway.iceberg.updates import (
    AddEncryptionKey,
    AddSnapshot,
    RemoveEncryptionKey,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
)

RESERVED_PROPERTIES: Final = frozenset(
    {
        "format-version",
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names that describe the metadata itself. They are never stored as properties."""


_LARGEST_STEP: Final = 2**32
"""Largest distance of a snapshot's sequence number from that of the table. Writers use the next one. A number near
2**63 would leave none for other writers.
"""

_MOST_ROWS: Final = 2**48
"""Most row ids that one snapshot may use or skip: far more than the rows of any table."""


def add_snapshot(builder: TableBuilder, update: AddSnapshot, at: str) -> None:
    """Add a snapshot.

    Its sequence number must exceed that of the table. Otherwise the client used an outdated table, and
    `RetryableValidation` (409) is raised. A snapshot without parent may have a lower number, because it starts a new
    history (of a replaced table). No number may exceed that of the table by more than `_LARGEST_STEP`. Raises
    `InvalidTableUpdate` or `BadRequestException` for an invalid snapshot.
    """
    snapshot = read_snapshot(update.snapshot, at=f"{at}.snapshot")
    for parts, noun in ((builder.schemas, "schema"), (builder.specs, "partition spec"), (builder.orders, "sort order")):
        if not parts:
            raise InvalidTableUpdate(f"Attempting to add a snapshot before a {noun} is added")
    if snapshot.snapshot_id == NO_SNAPSHOT:
        raise InvalidTableUpdate(
            f"Cannot add a snapshot with id {NO_SNAPSHOT}: this id means that there is no snapshot. Choose another id"
        )
    if builder.snapshot(snapshot.snapshot_id) is not None:
        raise InvalidTableUpdate(f"Snapshot already exists for id: {snapshot.snapshot_id}")
    if (
        builder.format_version > 1
        and snapshot.parent_snapshot_id is not None
        and snapshot.sequence_number <= builder.last_sequence_number
    ):
        raise RetryableValidation.of(
            f"Cannot add snapshot with sequence number {snapshot.sequence_number} "
            f"older than last sequence number {builder.last_sequence_number}"
        )
    if builder.format_version == 1 and snapshot.sequence_number:
        # Version 1 has no sequence numbers. A stored one would contradict the table after an upgrade.
        snapshot = Snapshot.of({n: v for n, v in snapshot.members().items() if n != "sequence-number"})
    if snapshot.sequence_number - builder.last_sequence_number > _LARGEST_STEP:
        raise InvalidTableUpdate(
            f"Cannot add a snapshot: its sequence number {snapshot.sequence_number} leaves too few for other writers. "
            f"Use {builder.last_sequence_number + 1}, the next one of the table"
        )
    if builder.format_version >= ROW_LINEAGE_FORMAT_VERSION:
        builder.next_row_id = _next_row_id(builder, snapshot)
    builder.last_sequence_number = max(builder.last_sequence_number, snapshot.sequence_number)
    builder.snapshots = builder.snapshots.append(snapshot)
    builder.added_snapshots[snapshot.snapshot_id] = snapshot
    builder.changed = True


def _next_row_id(builder: TableBuilder, snapshot: Snapshot) -> int:
    """Return the next row id of the table: the first one after the rows of this snapshot. It may leave a gap.

    Raises `RetryableValidation` if the snapshot's row ids are already in use, and `InvalidTableUpdate` if the snapshot
    has no row ids, or so many that too few are left for other writers.
    """
    if snapshot.first_row_id is None or snapshot.added_rows is None:
        raise InvalidTableUpdate("Cannot add a snapshot: first-row-id is null")
    if snapshot.first_row_id < builder.next_row_id:
        raise RetryableValidation.of(
            f"Cannot add a snapshot with first-row-id behind table next-row-id: "
            f"{snapshot.first_row_id} < {builder.next_row_id}"
        )
    next_row_id = snapshot.first_row_id + snapshot.added_rows
    if next_row_id - builder.next_row_id > _MOST_ROWS or next_row_id > codec.LARGEST_LONG:
        raise InvalidTableUpdate(
            f"Cannot add a snapshot: its row ids would go up to {next_row_id}, which leaves too few for other writers. "
            f"Begin with {builder.next_row_id}, and use at most {_MOST_ROWS}"
        )
    return next_row_id


def set_snapshot_ref(builder: TableBuilder, update: SetSnapshotRef, at: str) -> None:
    """Create or move a branch or tag. Moving `main` makes the snapshot current and adds a log entry.

    Raises `InvalidTableUpdate` for an unknown snapshot, for a tag with branch settings, and if `main` would be a tag.
    Raises `BadRequestException` for an empty name.
    """
    ref = _ref(update)
    if update.ref_name == MAIN and ref.type != "branch":
        raise InvalidTableUpdate("Cannot set main to a tag: main must be a branch")
    if not update.ref_name:
        raise BadRequestException(f"Malformed request: the name of a ref is empty at `{at}.ref-name`")
    check_retention(ref)
    existing = builder.refs.get(update.ref_name)
    if existing is not None and existing.same_as(ref):
        return
    snapshot = builder.snapshot(ref.snapshot_id)
    if snapshot is None:
        raise InvalidTableUpdate(f"Cannot set {update.ref_name} to unknown snapshot: {ref.snapshot_id}")
    if update.ref_name == MAIN and builder.current_snapshot_id != ref.snapshot_id:
        builder.current_snapshot_id = ref.snapshot_id
        builder.main_moved_to.append(ref.snapshot_id)
        builder.snapshot_log = builder.snapshot_log.append(
            log_entry(ref.snapshot_id, _time_of_change(builder, snapshot))
        )
    builder.refs[update.ref_name] = ref
    builder.changed = True


def _time_of_change(builder: TableBuilder, snapshot: Snapshot) -> int:
    """Return the time at which a snapshot becomes current, for the snapshot log (`snapshots.log_time`).

    For a snapshot that an earlier commit added, it is the time of this commit.
    """
    last = builder.snapshot_log.last
    last_ms = last.timestamp_ms if last is not None else 0
    if snapshot.snapshot_id not in builder.added_snapshots:
        return max(builder.commit_ms, last_ms)
    return log_time(snapshot.timestamp_ms, now_ms=builder.now_ms, commit_ms=builder.commit_ms, last_ms=last_ms)


def _ref(update: SetSnapshotRef) -> SnapshotRef:
    members: dict[str, object] = {"snapshot-id": update.snapshot_id, "type": update.type}
    optional = {
        "max-ref-age-ms": update.max_ref_age_ms,
        "max-snapshot-age-ms": update.max_snapshot_age_ms,
        "min-snapshots-to-keep": update.min_snapshots_to_keep,
    }
    return SnapshotRef.of(members | {name: value for name, value in optional.items() if value is not None})


def remove_snapshots(builder: TableBuilder, update: RemoveSnapshots, at: str) -> None:
    """Remove snapshots, their statistics, and the refs that point to them. Unknown ids are ignored.

    Parent ids in other snapshots are not changed.
    """
    gone = frozenset(update.snapshot_ids)
    kept = builder.snapshots.only(lambda snapshot: snapshot.snapshot_id not in gone)
    if kept is builder.snapshots:
        return
    builder.snapshots = kept
    builder.known_snapshots = None
    builder.statistics = builder.statistics.only(lambda file: file.snapshot_id not in gone)
    builder.partition_statistics = builder.partition_statistics.only(lambda file: file.snapshot_id not in gone)
    for name in [name for name, ref in builder.refs.items() if ref.snapshot_id in gone]:
        _drop_ref(builder, name)
    for snapshot_id in gone & builder.added_snapshots.keys():
        del builder.added_snapshots[snapshot_id]
    builder.removed_snapshots = True
    builder.changed = True


def remove_snapshot_ref(builder: TableBuilder, update: RemoveSnapshotRef, at: str) -> None:
    """Remove a branch or tag. A missing ref is ignored. After `main` is removed, there is no current snapshot."""
    if update.ref_name in builder.refs:
        _drop_ref(builder, update.ref_name)
        builder.changed = True


def _drop_ref(builder: TableBuilder, name: str) -> None:
    del builder.refs[name]
    if name == MAIN:
        builder.current_snapshot_id = None


def set_statistics(builder: TableBuilder, update: SetStatistics, at: str) -> None:
    """Set the statistics file of a snapshot. It replaces an earlier file of the same snapshot."""
    file = StatisticsFile.of(codec.canonical_object(update.statistics, at=f"{at}.statistics"), at=f"{at}.statistics")
    if update.snapshot_id is not None and update.snapshot_id != file.snapshot_id:
        raise BadRequestException(
            f"Malformed request: snapshot-id {update.snapshot_id} differs from the snapshot-id {file.snapshot_id} of "
            f"the statistics at `{at}`"
        )
    if any(bytes(known.text) == bytes(file.text) for known in builder.statistics):
        return
    builder.statistics = builder.statistics.only(lambda known: known.snapshot_id != file.snapshot_id).append(file)
    builder.changed = True


def remove_statistics(builder: TableBuilder, update: RemoveStatistics, at: str) -> None:
    """Remove the statistics file of a snapshot. A missing file is ignored."""
    kept = builder.statistics.only(lambda file: file.snapshot_id != update.snapshot_id)
    builder.changed = builder.changed or kept is not builder.statistics
    builder.statistics = kept


def set_partition_statistics(builder: TableBuilder, update: SetPartitionStatistics, at: str) -> None:
    """Set the partition statistics file of a snapshot. It replaces an earlier file of the same snapshot."""
    where = f"{at}.partition-statistics"
    file = PartitionStatisticsFile.of(codec.canonical_object(update.partition_statistics, at=where), at=where)
    if any(bytes(known.text) == bytes(file.text) for known in builder.partition_statistics):
        return
    others = builder.partition_statistics.only(lambda known: known.snapshot_id != file.snapshot_id)
    builder.partition_statistics = others.append(file)
    builder.changed = True


def remove_partition_statistics(builder: TableBuilder, update: RemovePartitionStatistics, at: str) -> None:
    """Remove the partition statistics file of a snapshot. A missing file is ignored."""
    kept = builder.partition_statistics.only(lambda file: file.snapshot_id != update.snapshot_id)
    builder.changed = builder.changed or kept is not builder.partition_statistics
    builder.partition_statistics = kept


def set_properties(builder: TableBuilder, update: SetProperties, at: str) -> None:
    """Set table properties and ignore reserved names.

    A commit that sets only equal values does not change the table.
    """
    requested = persisted_properties(update.updates)
    check_settable(builder.properties, requested)
    if any(builder.properties.get(name) != value for name, value in requested.items()):
        builder.properties.update(requested)
        builder.changed = True


def remove_properties(builder: TableBuilder, update: RemoveProperties, at: str) -> None:
    """Remove properties. Missing names are ignored."""
    check_removable(builder.properties, update.removals)
    for name in update.removals:
        if builder.properties.pop(name, None) is not None:
            builder.changed = True


def add_encryption_key(builder: TableBuilder, update: AddEncryptionKey, at: str) -> None:
    """Add a wrapped encryption key. If a key with this id exists, the update is ignored, because keys are immutable."""
    where = f"{at}.encryption-key"
    members = codec.canonical_object(update.encryption_key, at=where)
    key = EncryptedKey.of({name: value for name, value in members.items() if value is not None}, at=where)
    key.require_base64(at=where)
    if any(known.key_id == key.key_id for known in builder.encryption_keys):
        return
    builder.encryption_keys = builder.encryption_keys.append(key)
    builder.changed = True


def remove_encryption_key(builder: TableBuilder, update: RemoveEncryptionKey, at: str) -> None:
    """Remove a wrapped encryption key. An unknown id is ignored."""
    kept = builder.encryption_keys.only(lambda key: key.key_id != update.key_id)
    builder.changed = builder.changed or kept is not builder.encryption_keys
    builder.encryption_keys = kept


def persisted_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties without the reserved names."""
    return {name: value for name, value in properties.items() if name not in RESERVED_PROPERTIES}
