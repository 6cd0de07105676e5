# SPDX-License-Identifier: Apache-2.0
"""Table metadata of format versions 1 to 3: the value type, decoding, and byte-stable encoding.

Arrays of the document are `Parts`. Decoding stores their text, and they are parsed on first access. So a commit that
appends a snapshot to a table with thousands of snapshots parses none of these. Unknown members are kept, at the top
level in `extra` and inside of parts. Sources: Iceberg table specification, "Table Metadata Fields", and the writer of
the Java library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar
from uuid import UUID

import msgspec
from msgspec import Meta, Raw, Struct

from gateway.iceberg import codec
from gateway.iceberg.adoption import table_as_stored
from gateway.iceberg.codec import Count, Long, Part, Parts
from gateway.iceberg.consistency import check_consistency
from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.limits import Limits, Measured, refuse_growth, refuse_large_document
from gateway.iceberg.partition import (
    FIRST_PARTITION_FIELD_ID,
    UNPARTITIONED,
    UNSORTED,
    PartitionField,
    PartitionSpec,
    SortOrder,
)
from gateway.iceberg.schema import Schema
from gateway.iceberg.snapshots import (
    MAIN,
    EncryptedKey,
    MetadataLogEntry,
    PartitionStatisticsFile,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    StatisticsFile,
    blocks_writers,
    branch,
    mended,
)
from lakegate.restrictions.literals import ABSENT, Int

SUPPORTED_FORMAT_VERSIONS: Final = frozenset({1, 2, 3})
ROW_LINEAGE_FORMAT_VERSION: Final = 3
NO_SNAPSHOT: Final = -1
"""The snapshot id with which versions 1 and 2 express "no current snapshot"."""

P = TypeVar("P", bound=Part)
PartT = TypeVar("PartT", bound=Part)


class TableMetadata(Struct, frozen=True, kw_only=True):
    """One version of a table's metadata. Times are milliseconds since the epoch.

    Encode it with `encode_table_metadata` only.
    """

    format_version: int
    table_uuid: str
    location: str
    last_sequence_number: int = 0
    last_updated_ms: int
    last_column_id: int
    schemas: Parts[Schema]
    current_schema_id: int
    partition_specs: Parts[PartitionSpec]
    default_spec_id: int
    last_partition_id: int
    sort_orders: Parts[SortOrder]
    default_sort_order_id: int
    properties: Mapping[str, str]
    current_snapshot_id: int | None = None
    snapshots: Parts[Snapshot]
    refs: Mapping[str, SnapshotRef]
    snapshot_log: Parts[SnapshotLogEntry]
    metadata_log: Parts[MetadataLogEntry]
    statistics: Parts[StatisticsFile]
    partition_statistics: Parts[PartitionStatisticsFile]
    next_row_id: int = 0
    encryption_keys: Parts[EncryptedKey]
    extra: Mapping[str, Raw]

    @property
    def uuid(self) -> UUID:
        """Return the table's UUID as a UUID object."""
        return UUID(self.table_uuid)

    @property
    def schema(self) -> Schema:
        """Return the current schema. Raises `BadRequestException` if the document does not contain it."""
        return _by_id(self.schemas, "schema_id", self.current_schema_id, "current-schema-id")

    @property
    def default_spec(self) -> PartitionSpec:
        """Return the default partition spec, for new data. Raises `BadRequestException` if it is missing."""
        return _by_id(self.partition_specs, "spec_id", self.default_spec_id, "default-spec-id")

    @property
    def default_sort_order(self) -> SortOrder:
        """Return the default sort order, for new data. Raises `BadRequestException` if it is missing."""
        return _by_id(self.sort_orders, "order_id", self.default_sort_order_id, "default-sort-order-id")

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot with this id, or None.

        Snapshots are not parsed if their text cannot contain the id.
        """
        for added in self.snapshots.appended_here:
            if added.snapshot_id == snapshot_id:
                return added
        if not self.snapshots.may_mention(snapshot_id):
            return None
        return next((s for s in self.snapshots if s.snapshot_id == snapshot_id), None)

    @property
    def measured(self) -> Measured:
        """Return the sizes of the parts that can grow, for the check of limits."""
        return Measured(
            histories={
                "snapshots": self.snapshots,
                "snapshot-log entries": self.snapshot_log,
                "metadata-log entries": self.metadata_log,
                "statistics files": self.statistics,
                "partition statistics files": self.partition_statistics,
            },
            structures={
                "schemas": self.schemas,
                "partition specs": self.partition_specs,
                "sort orders": self.sort_orders,
                "encryption keys": self.encryption_keys,
            },
            properties=self.properties,
            refs=len(self.refs),
        )


class _Scalars(Struct, frozen=True, rename="kebab", kw_only=True):
    """The top-level members of a document that are not arrays."""

    format_version: Int
    table_uuid: str | None = None
    location: str
    last_sequence_number: Count | None = None
    last_updated_ms: Count
    last_column_id: Int
    current_schema_id: Int | None = None
    default_spec_id: Int | None = None
    last_partition_id: Int | None = None
    default_sort_order_id: Int | None = None
    properties: dict[str, str] | None = None
    current_snapshot_id: Long | None = None
    refs: dict[str, Raw] | None = None
    next_row_id: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


_ARRAYS: Final = (
    "schemas",
    "partition-specs",
    "sort-orders",
    "snapshots",
    "snapshot-log",
    "metadata-log",
    "statistics",
    "partition-statistics",
    "encryption-keys",
)
_SCALARS: Final = tuple(field.encode_name for field in msgspec.structs.fields(_Scalars))
_KNOWN: Final = frozenset({*_SCALARS, *_ARRAYS, "schema", "partition-spec"})


def decode_stored_table_metadata(data: bytes) -> TableMetadata:
    """Decode a document that this catalog wrote. Its consistency is not checked, and arrays are not parsed.

    Raises `BadRequestException` if the document is not table metadata.
    """
    return _read(codec.decode(data, dict[str, Raw]))


def writable_document(data: bytes, now_ms: int) -> bytes:
    """Return a stored document in which no time stops a reader or writer (`snapshots.mended`). Usually it is unchanged.

    `now_ms` is the time of the server's clock. Documents of views and generic tables are returned unchanged.
    """
    if not blocks_writers(data, now_ms):
        return data
    return encode_table_metadata(mended(decode_stored_table_metadata(data), now_ms))


def encode_table_metadata(metadata: TableMetadata) -> bytes:
    """Encode the document as JSON with a fixed order of members. Decoding and encoding again returns the same bytes.

    Version 1 also has `schema` and `partition-spec`. `last-sequence-number` exists from version 2, `next-row-id` from
    version 3. If there is no current snapshot, its id is -1 before version 3 and null from version 3.
    """
    m = metadata
    v1, lineage = m.format_version == 1, m.format_version >= ROW_LINEAGE_FORMAT_VERSION
    members: dict[str, Any] = {"format-version": m.format_version, "table-uuid": m.table_uuid, "location": m.location}
    if not v1:
        members["last-sequence-number"] = m.last_sequence_number
    members |= {"last-updated-ms": m.last_updated_ms, "last-column-id": m.last_column_id}
    if v1:
        members["schema"] = m.schema.text
    members |= {"current-schema-id": m.current_schema_id, "schemas": m.schemas.json}
    if v1:
        members["partition-spec"] = m.default_spec.members()["fields"]
    members |= {
        "default-spec-id": m.default_spec_id,
        "partition-specs": m.partition_specs.json,
        "last-partition-id": m.last_partition_id,
        "default-sort-order-id": m.default_sort_order_id,
        "sort-orders": m.sort_orders.json,
        "properties": m.properties,
        "current-snapshot-id": m.current_snapshot_id,
    }
    if m.current_snapshot_id is None and not lineage:
        members["current-snapshot-id"] = NO_SNAPSHOT
    if lineage:
        members["next-row-id"] = m.next_row_id
    if bytes(keys := m.encryption_keys.json) != b"[]":
        members["encryption-keys"] = keys
    members |= {
        "refs": {name: ref.text for name, ref in m.refs.items()},
        "snapshots": m.snapshots.json,
        "statistics": m.statistics.json,
        "partition-statistics": m.partition_statistics.json,
        "snapshot-log": m.snapshot_log.json,
        "metadata-log": m.metadata_log.json,
        **m.extra,
    }
    return codec.encode(members)


def _read(texts: Mapping[str, Raw]) -> TableMetadata:
    # Decoding the scalar members from their own text avoids a second scan of all snapshots.
    scalars = codec.decode(codec.encode({n: texts[n] for n in _SCALARS if n in texts}), _Scalars)
    if scalars.format_version not in SUPPORTED_FORMAT_VERSIONS:
        raise BadRequestException(
            f"Unsupported format version {scalars.format_version} of table metadata. Supported versions: 1 to 3"
        )
    if scalars.table_uuid is None:
        raise BadRequestException("Table metadata has no table-uuid, which is required from format version 2")
    schemas, current_schema_id = _schemas(scalars, texts)
    specs, default_spec_id = _specs(scalars, texts)
    orders = _parts(SortOrder, texts, "sort-orders", or_else=[UNSORTED])
    current = None if scalars.current_snapshot_id == NO_SNAPSHOT else scalars.current_snapshot_id
    last_partition_id = scalars.last_partition_id
    return TableMetadata(
        format_version=scalars.format_version,
        table_uuid=scalars.table_uuid,
        location=scalars.location,
        last_sequence_number=scalars.last_sequence_number or 0,
        last_updated_ms=scalars.last_updated_ms,
        last_column_id=scalars.last_column_id,
        schemas=schemas,
        current_schema_id=current_schema_id,
        partition_specs=specs,
        default_spec_id=default_spec_id,
        last_partition_id=max(s.last_field_id for s in specs) if last_partition_id is None else last_partition_id,
        sort_orders=orders,
        default_sort_order_id=scalars.default_sort_order_id or 0,
        properties=scalars.properties or {},
        current_snapshot_id=current,
        snapshots=_parts(Snapshot, texts, "snapshots"),
        refs=_refs(scalars.refs, current),
        snapshot_log=_parts(SnapshotLogEntry, texts, "snapshot-log"),
        metadata_log=_parts(MetadataLogEntry, texts, "metadata-log"),
        statistics=_parts(StatisticsFile, texts, "statistics"),
        partition_statistics=_parts(PartitionStatisticsFile, texts, "partition-statistics"),
        next_row_id=scalars.next_row_id or 0,
        encryption_keys=_parts(EncryptedKey, texts, "encryption-keys"),
        extra={name: text for name, text in texts.items() if name not in _KNOWN},
    )


def _parts(kind: type[P], texts: Mapping[str, Raw], name: str, *, or_else: list[P] | None = None) -> Parts[P]:
    text = texts.get(name, ABSENT)
    return Parts.of(kind, or_else or ()) if text == ABSENT else Parts(kind, text)


def _schemas(scalars: _Scalars, texts: Mapping[str, Raw]) -> tuple[Parts[Schema], int]:
    """Return the schemas and the id of the current schema.

    Early writers of version 1 wrote only the current schema as `schema`, and some without an id.
    """
    if (single := texts.get("schema")) is not None and "schemas" not in texts:
        schema = Schema.read(single, at="$.schema")
        schema = schema.with_id(schema.schema_id)
        return Parts.of(Schema, [schema]), schema.schema_id
    if scalars.current_schema_id is None:
        raise BadRequestException("Malformed request: object missing required field `current-schema-id` at `$`")
    return _parts(Schema, texts, "schemas"), scalars.current_schema_id


def _specs(scalars: _Scalars, texts: Mapping[str, Raw]) -> tuple[Parts[PartitionSpec], int]:
    """Return the partition specs and the id of the default one.

    Early writers of version 1 wrote only the fields of their single spec. Fields without an id get ids that count from
    1000.
    """
    if "partition-specs" in texts:
        return _parts(PartitionSpec, texts, "partition-specs", or_else=[UNPARTITIONED]), scalars.default_spec_id or 0
    if (single := texts.get("partition-spec", ABSENT)) == ABSENT:
        return Parts.of(PartitionSpec, [UNPARTITIONED]), UNPARTITIONED.spec_id
    codec.decode(single, tuple[PartitionField, ...], at="$.partition-spec")
    members = codec.decode(single, list[dict[str, Any]], at="$.partition-spec")
    fields = [{"field-id": FIRST_PARTITION_FIELD_ID + i, **member} for i, member in enumerate(members)]
    return Parts.of(PartitionSpec, [PartitionSpec.of({"spec-id": 0, "fields": fields})]), 0


def _refs(texts: dict[str, Raw] | None, current: int | None) -> dict[str, SnapshotRef]:
    """Return the branches and tags. Old writers stored none: for their documents, `main` is the current snapshot."""
    if texts is None:
        return {} if current is None else {MAIN: branch(current)}
    return {name: SnapshotRef.read(text, at=f"$.refs.{name}") for name, text in texts.items()}


def _by_id(parts: Parts[PartT], attribute: str, requested: int, pointer: str) -> PartT:
    for part in parts:
        if getattr(part, attribute) == requested:
            return part
    raise BadRequestException(f"Table metadata is inconsistent: {pointer} is {requested}, but no such entry exists")


def decode_table_metadata(data: bytes, *, limits: Limits | None = None) -> TableMetadata:
    """Decode and validate a document from any source.

    Its size, its nesting, the form of every part, and the references between ids are checked. Duplicate members are
    resolved and white space is removed, so all readers see the document that was checked. Raises `MetadataTooLarge` and
    `BadRequestException`.
    """
    limits = limits or Limits()
    refuse_large_document(data, limits, "Table")
    metadata = decode_stored_table_metadata(codec.encode(table_as_stored(codec.canonical_object(data))))
    refuse_growth(limits, metadata.measured, None)
    check_consistency(metadata)
    return metadata
