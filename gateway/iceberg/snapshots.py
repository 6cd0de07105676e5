# SPDX-License-Identifier: Apache-2.0
"""Snapshots, the branches and tags that name them, and the files and logs kept beside them."""

from __future__ import annotations

import base64
from typing import Annotated, Final, Literal

from msgspec import Meta, Raw, Struct

from gateway.iceberg import codec
from gateway.iceberg.codec import Count, Int, Long
from gateway.iceberg.documents import Part
from gateway.iceberg.errors import BadRequestException

MAIN: Final = "main"

_OPTIONAL_MEMBERS: Final = (
    "parent-snapshot-id",
    "sequence-number",
    "schema-id",
    "first-row-id",
    "added-rows",
    "key-id",
    "summary",
    "manifests",
    "manifest-list",
)

Positive = Annotated[int, Meta(ge=1, le=2**63 - 1)]


class Snapshot(Part, frozen=True, kw_only=True):
    """One state of a table."""

    snapshot_id: Long
    timestamp_ms: Count
    parent_snapshot_id: Long | None = None
    sequence_number: Count = 0
    manifest_list: str | None = None
    manifests: tuple[str, ...] | None = None
    summary: dict[str, str] | None = None
    schema_id: Int | None = None
    first_row_id: Count | None = None
    added_rows: Count | None = None
    key_id: str | None = None

    @property
    def operation(self) -> str | None:
        """`append`, `replace`, `overwrite` or `delete`, as the writer declared it."""
        return (self.summary or {}).get("operation")


class SnapshotRef(Part, frozen=True, kw_only=True):
    """A branch or tag."""

    snapshot_id: Long
    type: Literal["branch", "tag"]
    max_ref_age_ms: Positive | None = None
    max_snapshot_age_ms: Positive | None = None
    min_snapshots_to_keep: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None

    def same_as(self, other: SnapshotRef) -> bool:
        """Equal in everything we know, whatever the text."""
        return _ref_values(self) == _ref_values(other)


class SnapshotLogEntry(Part, frozen=True, kw_only=True):
    """When a snapshot became the current one."""

    snapshot_id: Long
    timestamp_ms: Count


class MetadataLogEntry(Part, frozen=True, kw_only=True):
    """A metadata file the table had, and its last-updated time."""

    metadata_file: str
    timestamp_ms: Count


class BlobMetadata(Struct, frozen=True, rename="kebab", kw_only=True):
    """One blob of a statistics file."""

    type: str
    snapshot_id: Long
    sequence_number: Long
    fields: tuple[Int, ...]
    properties: dict[str, str] | None = None


class StatisticsFile(Part, frozen=True, kw_only=True):
    """A Puffin file with statistics of one snapshot."""

    snapshot_id: Long
    statistics_path: str
    file_size_in_bytes: Count
    file_footer_size_in_bytes: Count
    blob_metadata: tuple[BlobMetadata, ...]


class PartitionStatisticsFile(Part, frozen=True, kw_only=True):
    """A file with partition statistics of one snapshot."""

    snapshot_id: Long
    statistics_path: str
    file_size_in_bytes: Count


class EncryptedKey(Part, frozen=True, kw_only=True):
    """A wrapped key; `encrypted_key_metadata` is base64."""

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: dict[str, str] | None = None

    def require_base64(self, *, at: str) -> None:
        """Raises `BadRequestException` when the wrapped key is no base64: no engine could read the table."""
        try:
            base64.b64decode(self.encrypted_key_metadata, validate=True)
        except ValueError:
            raise BadRequestException(f"Malformed request: expected base64 at `{at}.encrypted-key-metadata`") from None


def read_snapshot(text: Raw, *, at: str) -> Snapshot:
    """A snapshot a client sent, in the form it is stored: without nulls, without a sequence number of 0 (readers of
    version 1 take its presence for version 2). Raises `BadRequestException`."""
    members = codec.canonical_object(text, at=at)
    for name in _OPTIONAL_MEMBERS:
        if name in members and members[name] is None:
            del members[name]
    if members.get("sequence-number") == 0:
        del members["sequence-number"]
    snapshot = Snapshot.of(members, at=at)
    if snapshot.manifest_list is None and snapshot.manifests is None:
        raise BadRequestException(f"Malformed request: object missing required field `manifest-list` at `{at}`")
    if snapshot.first_row_id is not None and snapshot.added_rows is None:
        raise BadRequestException("Invalid added-rows (required when first-row-id is set): null")
    return snapshot


def branch(snapshot_id: int) -> SnapshotRef:
    """A plain branch at a snapshot."""
    return SnapshotRef.of({"snapshot-id": snapshot_id, "type": "branch"})


def log_entry(snapshot_id: int, timestamp_ms: int) -> SnapshotLogEntry:
    """A new entry of the snapshot log."""
    return SnapshotLogEntry.of({"timestamp-ms": timestamp_ms, "snapshot-id": snapshot_id})


def metadata_log_entry(metadata_file: str, timestamp_ms: int) -> MetadataLogEntry:
    """A new entry of the metadata log."""
    return MetadataLogEntry.of({"timestamp-ms": timestamp_ms, "metadata-file": metadata_file})


def _ref_values(ref: SnapshotRef) -> tuple[object, ...]:
    return (ref.snapshot_id, ref.type, ref.max_ref_age_ms, ref.max_snapshot_age_ms, ref.min_snapshots_to_keep)
