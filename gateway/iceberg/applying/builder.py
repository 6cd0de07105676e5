# SPDX-License-Identifier: Apache-2.0
"""The mutable copy of table metadata during one commit, and its conversion back to immutable metadata."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from msgspec import Raw

from gateway.iceberg.codec import Parts
from gateway.iceberg.errors import InvalidTableUpdate
from gateway.iceberg.metadata import SUPPORTED_FORMAT_VERSIONS, TableMetadata
from gateway.iceberg.partition import (
    UNPARTITIONED,
    UNPARTITIONED_LAST_ID,
    UNSORTED,
    PartitionSpec,
    SortOrder,
    check_bindable,
    check_default_spec,
    check_order,
)
from gateway.iceberg.properties import previous_versions_kept
from gateway.iceberg.schema import Schema
from gateway.iceberg.snapshots import (
    EncryptedKey,
    MetadataLogEntry,
    PartitionStatisticsFile,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    StatisticsFile,
    check_snapshot_time,
    mended,
    metadata_log_entry,
)

_CHEAP_SEARCHES: Final = 4
"""Number of text searches for snapshot ids per commit before all snapshots are parsed once."""


@dataclass(slots=True, kw_only=True)
class TableBuilder:
    """A mutable copy of the metadata, and a record of the changes of this commit.

    `schema_id`, `spec_id`, `order_id`, `table_uuid` and `location` are None until a create commit sets them. `now_ms`
    is the time of the server's clock. The time of the commit does not depend on the clock of a writer.
    """

    base: TableMetadata | None
    now_ms: int
    allowed_format_versions: frozenset[int] = SUPPORTED_FORMAT_VERSIONS

    format_version: int
    table_uuid: str | None = None
    location: str | None = None
    last_sequence_number: int = 0
    last_column_id: int = 0
    schemas: Parts[Schema] = field(default_factory=lambda: Parts(Schema))
    schema_id: int | None = None
    specs: Parts[PartitionSpec] = field(default_factory=lambda: Parts(PartitionSpec))
    spec_id: int | None = None
    last_partition_id: int = UNPARTITIONED_LAST_ID
    orders: Parts[SortOrder] = field(default_factory=lambda: Parts(SortOrder))
    order_id: int | None = None
    properties: dict[str, str] = field(default_factory=dict)
    current_snapshot_id: int | None = None
    snapshots: Parts[Snapshot] = field(default_factory=lambda: Parts(Snapshot))
    refs: dict[str, SnapshotRef] = field(default_factory=dict)
    snapshot_log: Parts[SnapshotLogEntry] = field(default_factory=lambda: Parts(SnapshotLogEntry))
    metadata_log: Parts[MetadataLogEntry] = field(default_factory=lambda: Parts(MetadataLogEntry))
    statistics: Parts[StatisticsFile] = field(default_factory=lambda: Parts(StatisticsFile))
    partition_statistics: Parts[PartitionStatisticsFile] = field(default_factory=lambda: Parts(PartitionStatisticsFile))
    next_row_id: int = 0
    encryption_keys: Parts[EncryptedKey] = field(default_factory=lambda: Parts(EncryptedKey))
    extra: dict[str, Raw] = field(default_factory=dict)

    changed: bool = False
    added_schemas: set[int] = field(default_factory=set)
    last_added_schema: int | None = None
    added_specs: set[int] = field(default_factory=set)
    last_added_spec: int | None = None
    added_orders: set[int] = field(default_factory=set)
    last_added_order: int | None = None
    added_snapshots: dict[int, Snapshot] = field(default_factory=dict)
    main_moved_to: list[int] = field(default_factory=list)
    removed_snapshots: bool = False
    searches: int = 0
    known_snapshots: dict[int, Snapshot] | None = None

    @classmethod
    def empty(
        cls, *, format_version: int, now_ms: int, allowed: frozenset[int] = SUPPORTED_FORMAT_VERSIONS
    ) -> TableBuilder:
        """Return a builder for a table that does not exist yet."""
        return cls(base=None, now_ms=now_ms, format_version=format_version, allowed_format_versions=allowed)

    @classmethod
    def on(
        cls, base: TableMetadata, *, now_ms: int, allowed: frozenset[int] = SUPPORTED_FORMAT_VERSIONS
    ) -> TableBuilder:
        """Return a builder with the content of `base`. The base is not changed.

        Times in `base` that would stop writers are corrected (`snapshots.mended`), so that the table can be written
        again after the next commit.
        """
        base = mended(base, now_ms)
        return cls(
            base=base,
            now_ms=now_ms,
            allowed_format_versions=allowed,
            format_version=base.format_version,
            table_uuid=base.table_uuid,
            location=base.location,
            last_sequence_number=base.last_sequence_number,
            last_column_id=base.last_column_id,
            schemas=base.schemas,
            schema_id=base.current_schema_id,
            specs=base.partition_specs,
            spec_id=base.default_spec_id,
            last_partition_id=base.last_partition_id,
            orders=base.sort_orders,
            order_id=base.default_sort_order_id,
            properties=dict(base.properties),
            current_snapshot_id=base.current_snapshot_id,
            snapshots=base.snapshots,
            refs=dict(base.refs),
            snapshot_log=base.snapshot_log,
            metadata_log=base.metadata_log,
            statistics=base.statistics,
            partition_statistics=base.partition_statistics,
            next_row_id=base.next_row_id,
            encryption_keys=base.encryption_keys,
            extra=dict(base.extra),
        )

    @property
    def commit_ms(self) -> int:
        """Return the time of the commit: that of the server's clock, or of the previous commit if it is later."""
        return max(self.now_ms, self.base.last_updated_ms if self.base is not None else 0)

    def schema(self) -> Schema:
        """Return the current schema. Raises `InvalidTableUpdate` if there is none yet."""
        for schema in self.schemas:
            if schema.schema_id == self.schema_id:
                return schema
        raise InvalidTableUpdate(
            "The table has no current schema. Send the updates add-schema and set-current-schema first"
        )

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot with this id, or None.

        Snapshots that this commit added are found without parsing the others.
        """
        if (added := self.added_snapshots.get(snapshot_id)) is not None:
            return added
        self.searches += 1
        if self.known_snapshots is None and self.searches > _CHEAP_SEARCHES:
            self.known_snapshots = {s.snapshot_id: s for s in self.snapshots}
        if self.known_snapshots is not None:
            return self.known_snapshots.get(snapshot_id)
        if not self.snapshots.may_mention(snapshot_id):
            return None
        return next((s for s in self.snapshots if s.snapshot_id == snapshot_id), None)

    def finish(self, base_location: str | None) -> tuple[TableMetadata, tuple[str, ...]]:
        """Return the new metadata, and the metadata files that its log does not contain any more.

        `base_location` is the file of `base`. It is added to the metadata log. Raises `InvalidTableUpdate` or
        `BadRequestException` if the result is not a consistent table.
        """
        self._fill_create_defaults()
        schema = self.schema()
        _check_defaults(self, schema)
        self.snapshot_log = _cleaned_snapshot_log(self)
        self._check_current_snapshot_time()
        expired: tuple[str, ...] = ()
        if self.base is not None and base_location is not None:
            expired = self._log_previous(base_location, self.base.last_updated_ms)
        if self.table_uuid is None or self.location is None or self.schema_id is None:
            raise InvalidTableUpdate("A new table needs the updates assign-uuid, set-location and set-current-schema")
        metadata = TableMetadata(
            format_version=self.format_version,
            table_uuid=self.table_uuid,
            location=self.location,
            last_sequence_number=self.last_sequence_number,
            last_updated_ms=self.commit_ms,
            last_column_id=self.last_column_id,
            schemas=self.schemas,
            current_schema_id=self.schema_id,
            partition_specs=self.specs,
            default_spec_id=self.spec_id or 0,
            last_partition_id=self.last_partition_id,
            sort_orders=self.orders,
            default_sort_order_id=self.order_id or 0,
            properties=self.properties,
            current_snapshot_id=self.current_snapshot_id,
            snapshots=self.snapshots,
            refs=self.refs,
            snapshot_log=self.snapshot_log,
            metadata_log=self.metadata_log,
            statistics=self.statistics,
            partition_statistics=self.partition_statistics,
            next_row_id=self.next_row_id,
            encryption_keys=self.encryption_keys,
            extra=self.extra,
        )
        return metadata, expired

    def _fill_create_defaults(self) -> None:
        """Make the table unpartitioned if a create commit set no partition spec, and unsorted if it set no sort
        order.
        """
        if self.spec_id is None:
            self.spec_id = UNPARTITIONED.spec_id
            if not any(spec.spec_id == self.spec_id for spec in self.specs):
                self.specs = self.specs.append(UNPARTITIONED)
        if self.order_id is None:
            self.order_id = UNSORTED.order_id
            if not any(order.order_id == self.order_id for order in self.orders):
                self.orders = self.orders.append(UNSORTED)

    def _check_current_snapshot_time(self) -> None:
        """Raise `BadRequestException` if this commit made a snapshot with a time in the future the current one."""
        if self.current_snapshot_id in self.main_moved_to:
            added = self.added_snapshots.get(self.current_snapshot_id)
            if added is not None:
                check_snapshot_time(added.timestamp_ms, self.commit_ms)

    def _log_previous(self, location: str, timestamp_ms: int) -> tuple[str, ...]:
        """Add the base file to the metadata log and shorten the log to its configured length.

        Returns the files removed from the log, oldest first.
        """
        keep = previous_versions_kept(self.properties)
        entries = self.metadata_log.items
        dropped, kept = (entries[: len(entries) - keep + 1], entries[len(entries) - keep + 1 :])
        if len(entries) < keep:
            dropped, kept = (), entries
        if dropped:
            self.metadata_log = Parts.of(MetadataLogEntry, kept)
        self.metadata_log = self.metadata_log.append(metadata_log_entry(location, timestamp_ms))
        return tuple(entry.metadata_file for entry in dropped)


def _check_defaults(builder: TableBuilder, schema: Schema) -> None:
    """Raise an error of status 400 unless the default spec and sort order exist and fit the current schema.

    The fit is checked only if the commit changed the current schema, the default spec or the default order.
    """
    spec = next((s for s in builder.specs if s.spec_id == builder.spec_id), None)
    order = next((o for o in builder.orders if o.order_id == builder.order_id), None)
    if spec is None:
        raise InvalidTableUpdate(f"Cannot set default partition spec to unknown spec: {builder.spec_id}")
    if order is None:
        raise InvalidTableUpdate(f"Cannot set default sort order to unknown order: {builder.order_id}")
    unchanged = builder.base is not None and (
        builder.base.current_schema_id,
        builder.base.default_spec_id,
        builder.base.default_sort_order_id,
    ) == (builder.schema_id, builder.spec_id, builder.order_id)
    if not unchanged:
        check_default_spec(spec, schema)
        check_order(order, schema)
        check_bindable(builder.specs, schema)


def _cleaned_snapshot_log(builder: TableBuilder) -> Parts[SnapshotLogEntry]:
    """Return the snapshot log without snapshots that were never visible, and without entries before a gap.

    A snapshot was never visible if this commit added it and a later update of this commit replaced it as the current
    one. If the commit removed snapshots, an entry with a missing snapshot also removes all earlier entries. Otherwise
    time travel to the period of the missing snapshot would read the state before it. Raises `InvalidTableUpdate` if the
    last entry is not the current snapshot.
    """
    unseen = {s for s in builder.main_moved_to if s in builder.added_snapshots and s != builder.current_snapshot_id}
    if not unseen and not builder.removed_snapshots:
        return builder.snapshot_log
    known = {snapshot.snapshot_id for snapshot in builder.snapshots}
    kept: list[SnapshotLogEntry] = []
    for entry in builder.snapshot_log:
        if entry.snapshot_id not in known:
            if builder.removed_snapshots:
                kept.clear()
        elif entry.snapshot_id not in unseen:
            kept.append(entry)
    if builder.current_snapshot_id is not None and (not kept or kept[-1].snapshot_id != builder.current_snapshot_id):
        raise InvalidTableUpdate("Cannot set invalid snapshot log: latest entry is not the current snapshot")
    if len(kept) == len(builder.snapshot_log):
        return builder.snapshot_log
    return Parts.of(SnapshotLogEntry, kept)
