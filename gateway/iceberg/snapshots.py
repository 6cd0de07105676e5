# SPDX-License-Identifier: Apache-2.0
"""Snapshots, branches and tags, statistics files, encryption keys and log entries of a table, and the times of commits.

The times are chosen so that all clients can read and write the table, even if the clock of one writer is wrong.

Readers refuse a document whose logs go back by more than a minute, or whose `last-updated-ms` lies more than a minute
before the last entry of a log. Java clients also check the document that they are about to commit, with their own clock
as `last-updated-ms`: a time in the future stops them. The rule and its tolerance are those of the Java reference
implementation (`TableMetadata`).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

from gateway.iceberg import codec
from gateway.iceberg.codec import Count, Long, Part, Parts
from gateway.iceberg.errors import BadRequestException, InvalidTableUpdate
from lakegate.restrictions.literals import Int

if TYPE_CHECKING:
    from gateway.iceberg.metadata import TableMetadata

    pass


CLOCK_TOLERANCE_MS: Final = 60_000
"""Milliseconds by which a time may lie before the previous one, or after the clock of the server."""

P = TypeVar("P", bound=Part)


class _Entry(Struct, frozen=True, rename="kebab"):
    timestamp_ms: int


class _Times(Struct, frozen=True, rename="kebab"):
    """The times in a table's document. The document of a view has none of them."""

    last_updated_ms: int = 0
    snapshot_log: tuple[_Entry, ...] = ()
    metadata_log: tuple[_Entry, ...] = ()


def log_time(snapshot_ms: int, *, now_ms: int, commit_ms: int, last_ms: int) -> int:
    """Return the time at which an added snapshot became current, for the snapshot log. All times are in milliseconds.

    It is the time of the snapshot, so that time travel to that time finds the snapshot, but never later than the
    commit, `commit_ms`, and never before the last entry of the log, `last_ms`. If the writer's clock differs from the
    server's, `now_ms`, by more than the tolerance, it is the time of the commit.
    """
    known = abs(snapshot_ms - now_ms) <= CLOCK_TOLERANCE_MS
    return max(min(snapshot_ms, commit_ms) if known else commit_ms, last_ms)


def check_snapshot_time(snapshot_ms: int, commit_ms: int) -> None:
    """Raise `BadRequestException` if a new current snapshot is more than a minute later than its commit."""
    if commit_ms - snapshot_ms < -CLOCK_TOLERANCE_MS:
        raise BadRequestException(
            f"Invalid update timestamp {commit_ms}: before last snapshot log entry at {snapshot_ms}. The time of the "
            f"snapshot is {(snapshot_ms - commit_ms) // 1000} seconds after the time of the catalog. Correct the clock "
            "of the writer and commit again"
        )


def check_log_times(metadata: TableMetadata) -> None:
    """Raise `BadRequestException` if a log goes back by more than a minute, or is later than the last update."""
    for name, times in (
        ("snapshot-log", [entry.timestamp_ms for entry in metadata.snapshot_log]),
        ("metadata-log", [entry.timestamp_ms for entry in metadata.metadata_log]),
    ):
        if not _ordered([*times, metadata.last_updated_ms]):
            raise BadRequestException(
                f"Table metadata is inconsistent: the times of {name} and last-updated-ms must not decrease by more "
                f"than {CLOCK_TOLERANCE_MS} milliseconds"
            )


def blocks_writers(document: bytes, now_ms: int) -> bool:
    """Return True if the times of a stored document stop readers or writers. `now_ms` is the time of the server."""
    try:
        times = msgspec.json.decode(document, type=_Times)
    except msgspec.DecodeError:  # Not the metadata of a table: nothing to repair.
        return False
    return _blocks(times.last_updated_ms, times.snapshot_log, times.metadata_log, now_ms)


def mended(metadata: TableMetadata, now_ms: int) -> TableMetadata:
    """Return the metadata with times that stop no reader or writer. Return the same object if nothing must be
    corrected.

    Times after the server's clock, `now_ms`, become that time. Any other log entry that is earlier than the entry
    before it gets the time of that entry.
    """
    snapshot_log, metadata_log = metadata.snapshot_log, metadata.metadata_log
    if not _blocks(metadata.last_updated_ms, _entries(snapshot_log.json), _entries(metadata_log.json), now_ms):
        return metadata
    new_snapshot_log: Parts[SnapshotLogEntry] = _ascending(snapshot_log, now_ms)
    new_metadata_log: Parts[MetadataLogEntry] = _ascending(metadata_log, now_ms)
    ends = [entry.timestamp_ms for entry in (new_snapshot_log.last, new_metadata_log.last) if entry is not None]
    return msgspec.structs.replace(
        metadata,
        last_updated_ms=max(min(metadata.last_updated_ms, now_ms), *ends),
        snapshot_log=new_snapshot_log,
        metadata_log=new_metadata_log,
    )


def _entries(log: Raw) -> tuple[_Entry, ...]:
    return msgspec.json.decode(log, type=tuple[_Entry, ...])


def _blocks(last_updated_ms: int, snapshot_log: Iterable[_Entry], metadata_log: Iterable[_Entry], now_ms: int) -> bool:
    if last_updated_ms > now_ms + CLOCK_TOLERANCE_MS:
        return True
    return not all(
        _ordered([*(entry.timestamp_ms for entry in log), last_updated_ms]) for log in (snapshot_log, metadata_log)
    )


def _ordered(times: list[int]) -> bool:
    return all(after - before >= -CLOCK_TOLERANCE_MS for before, after in zip(times, times[1:], strict=False))


def _ascending(log: Parts[P], now_ms: int) -> Parts[P]:
    entries: list[P] = []
    latest = 0
    for entry in log:
        members = entry.members()
        latest = max(min(members["timestamp-ms"], now_ms), latest)
        entries.append(type(entry).of({**members, "timestamp-ms": latest}))
    return Parts.of(log.kind, entries)


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
        """Return the operation in the summary (`append`, `replace`, `overwrite` or `delete`), or None."""
        return (self.summary or {}).get("operation")


class RefType(StrEnum):
    """The kind of a ref. Requests may spell it in any letter case, as for the Java library."""

    BRANCH = "branch"
    TAG = "tag"

    @classmethod
    def _missing_(cls, value: object) -> RefType | None:
        return next((each for each in cls if isinstance(value, str) and each == value.lower()), None)


class SnapshotRef(Part, frozen=True, kw_only=True):
    """A branch or tag."""

    snapshot_id: Long
    type: RefType
    max_ref_age_ms: Positive | None = None
    max_snapshot_age_ms: Positive | None = None
    min_snapshots_to_keep: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None

    def same_as(self, other: SnapshotRef) -> bool:
        """Return True if all known members are equal. Unknown members and the formatting are ignored."""
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
    """Parse a snapshot from a client and return it in the stored form (`stored_snapshot`).

    Raises `BadRequestException`.
    """
    snapshot = Snapshot.of(stored_snapshot(codec.canonical_object(text, at=at)), at=at)
    check_complete(snapshot, at=at)
    return snapshot


def stored_snapshot(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a snapshot in the stored form. The input is not changed.

    The stored form has no null members. It has no sequence number of 0, because readers infer format version 2 from it.
    A summary without `operation` gets `overwrite`: the Java library reads it so, and other readers need the member.
    """
    stored = {name: value for name, value in members.items() if value is not None or name not in _OPTIONAL_MEMBERS}
    if stored.get("sequence-number") == 0:
        del stored["sequence-number"]
    summary = stored.get("summary")
    if isinstance(summary, dict) and summary and summary.get("operation") is None:
        stored["summary"] = {**summary, "operation": "overwrite"}
    return stored


def check_complete(snapshot: Snapshot, *, at: str) -> None:
    """Raise `BadRequestException` if a snapshot has no manifests, or has a first row id without a number of rows."""
    if snapshot.manifest_list is None and snapshot.manifests is None:
        raise BadRequestException(f"Malformed request: object missing required field `manifest-list` at `{at}`")
    if snapshot.first_row_id is not None and snapshot.added_rows is None:
        raise BadRequestException("Invalid added-rows (required when first-row-id is set): null")


def check_retention(ref: SnapshotRef) -> None:
    """Raise `InvalidTableUpdate` if a tag has settings that only branches have."""
    if ref.type is RefType.TAG and (ref.min_snapshots_to_keep is not None or ref.max_snapshot_age_ms is not None):
        member = "minSnapshotsToKeep" if ref.min_snapshots_to_keep is not None else "maxSnapshotAgeMs"
        raise InvalidTableUpdate(f"Tags do not support setting {member}")


def branch(snapshot_id: int) -> SnapshotRef:
    """Return a branch that points to a snapshot, without settings."""
    return SnapshotRef.of({"snapshot-id": snapshot_id, "type": "branch"})


def log_entry(snapshot_id: int, timestamp_ms: int) -> SnapshotLogEntry:
    """Return a new entry of the snapshot log."""
    return SnapshotLogEntry.of({"timestamp-ms": timestamp_ms, "snapshot-id": snapshot_id})


def metadata_log_entry(metadata_file: str, timestamp_ms: int) -> MetadataLogEntry:
    """Return a new entry of the metadata log."""
    return MetadataLogEntry.of({"timestamp-ms": timestamp_ms, "metadata-file": metadata_file})


def _ref_values(ref: SnapshotRef) -> tuple[object, ...]:
    return (ref.snapshot_id, ref.type, ref.max_ref_age_ms, ref.max_snapshot_age_ms, ref.min_snapshots_to_keep)
