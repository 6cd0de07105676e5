# SPDX-License-Identifier: Apache-2.0
"""Snapshots, branches and tags, statistics files, encryption keys and log entries of a table."""

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
    """One snapshot of a table."""

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
        """Return `append`, `replace`, `overwrite` or `delete` as declared in the summary, or None."""
        return (self.summary or {}).get("operation")


class SnapshotRef(Part, frozen=True, kw_only=True):
    """A branch or tag."""

    snapshot_id: Long
    type: Literal["branch", "tag"]
    max_ref_age_ms: Positive | None = None
    max_snapshot_age_ms: Positive | None = None
    min_snapshots_to_keep: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None

    def same_as(self, other: SnapshotRef) -> bool:
        """Return True if all known members are equal. Unknown members and formatting are ignored."""
        return _ref_values(self) == _ref_values(other)


class SnapshotLogEntry(Part, frozen=True, kw_only=True):
    """The time at which a snapshot became the current one."""

    snapshot_id: Long
    timestamp_ms: Count


class MetadataLogEntry(Part, frozen=True, kw_only=True):
    """A previous metadata file of the table and its last-updated time."""

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
    """A wrapped encryption key. `encrypted_key_metadata` is base64."""

    key_id: str
    encrypted_key_metadata: str
    encrypted_by_id: str | None = None
    properties: dict[str, str] | None = None

    def require_base64(self, *, at: str) -> None:
        """Raise `BadRequestException` if the wrapped key is not base64. Engines could not read the table.

        `at` is the JSON path of the key for the message.
        """
        try:
            base64.b64decode(self.encrypted_key_metadata, validate=True)
        except ValueError:
            raise BadRequestException(f"Malformed request: expected base64 at `{at}.encrypted-key-metadata`") from None


def read_snapshot(text: Raw, *, at: str) -> Snapshot:
    """Parse a snapshot of a client and return it in the stored form. Raises `BadRequestException`.

    The stored form has no null members. It has no sequence number of 0, because readers infer format version 2 from it.
    """
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
    """Return a branch at a snapshot, without settings."""
    return SnapshotRef.of({"snapshot-id": snapshot_id, "type": "branch"})


def log_entry(snapshot_id: int, timestamp_ms: int) -> SnapshotLogEntry:
    """Return a new entry of the snapshot log."""
    return SnapshotLogEntry.of({"timestamp-ms": timestamp_ms, "snapshot-id": snapshot_id})


def metadata_log_entry(metadata_file: str, timestamp_ms: int) -> MetadataLogEntry:
    """Return a new entry of the metadata log."""
    return MetadataLogEntry.of({"timestamp-ms": timestamp_ms, "metadata-file": metadata_file})


def _ref_values(ref: SnapshotRef) -> tuple[object, ...]:
    return (ref.snapshot_id, ref.type, ref.max_ref_age_ms, ref.max_snapshot_age_ms, ref.min_snapshots_to_keep)
