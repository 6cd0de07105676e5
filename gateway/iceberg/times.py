# SPDX-License-Identifier: Apache-2.0
"""Times of commits. They keep a table readable and writable for all clients, whatever the clock of one writer shows.

Readers refuse a document whose logs go back by more than a minute, or whose `last-updated-ms` lies more than a minute
before the last entry of a log. Java clients also check the document that they are about to commit, with their own clock
as `last-updated-ms`: a time in the future stops them. The rule and its tolerance are those of the Java reference
implementation (`TableMetadata`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from gateway.iceberg.documents import Part, Parts
from gateway.iceberg.errors import BadRequestException

if TYPE_CHECKING:
    from gateway.iceberg.metadata import TableMetadata
    from gateway.iceberg.snapshots import MetadataLogEntry, SnapshotLogEntry

CLOCK_TOLERANCE_MS: Final = 60_000
"""Milliseconds by which a time may lie before the previous one, or after the clock of the server."""

P = TypeVar("P", bound=Part)


class _Entry(Struct, frozen=True, rename="kebab"):
    timestamp_ms: int


class _Times(Struct, frozen=True, rename="kebab"):
    """The times of a table's document. The document of a view has none of them."""

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
    except msgspec.DecodeError:  # Not a document of a table: nothing to mend.
        return False
    return _blocks(times.last_updated_ms, times.snapshot_log, times.metadata_log, now_ms)


def mended(metadata: TableMetadata, now_ms: int) -> TableMetadata:
    """Return the metadata with times that stop no reader or writer, or the same object if they stop none.

    Times after the clock of the server, `now_ms`, become that time. Other entries of the logs become as late as the
    entry before them.
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
