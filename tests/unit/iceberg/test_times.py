# SPDX-License-Identifier: Apache-2.0
"""Clocks of writers: no time that a writer sends stops another one, and the times of commits are the server's."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.metadata import (
    TableMetadata,
    decode_stored_table_metadata,
    decode_table_metadata,
    encode_table_metadata,
    writable_document,
)
from gateway.iceberg.snapshots import CLOCK_TOLERANCE_MS
from tests.unit.iceberg.conftest import CREATED_MS, make_table, ref, run_commit, snapshot

NOW = CREATED_MS + 3_600_000
HOUR = 3_600_000
YEAR = 365 * 24 * HOUR


def put(**values: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": values}


def append(base: TableMetadata, clock_ms: int, *, branch: str = "main", now_ms: int = NOW) -> TableMetadata:
    """Commit a snapshot of a writer whose clock shows `clock_ms`."""
    number = 1 + len(base.snapshots)
    known = base.refs.get(branch)
    added = snapshot(
        number,
        seq=base.last_sequence_number + 1,
        parent=known.snapshot_id if known else None,
        **{"timestamp-ms": clock_ms},
    )
    return run_commit(base, added, ref(branch, number), now_ms=now_ms).metadata


def java_opens(metadata: TableMetadata) -> bool:
    """Return True if the checks of the Java library on the times of a document pass."""
    logs = (metadata.snapshot_log, metadata.metadata_log)
    times = [[*(e.timestamp_ms for e in log), metadata.last_updated_ms] for log in logs]
    return all(b - a >= -60_000 for each in times for a, b in zip(each, each[1:], strict=False))


def java_commits(metadata: TableMetadata, clock_ms: int) -> bool:
    """Return True if a Java client with a clock can build its next commit."""
    latest = [metadata.last_updated_ms, *(e.timestamp_ms for e in metadata.snapshot_log)]
    return all(clock_ms - each >= -60_000 for each in latest)


def test_the_time_of_a_commit_is_the_servers() -> None:
    for clock in (NOW, NOW - HOUR, NOW - YEAR, NOW + 30_000):
        assert append(make_table(), clock).last_updated_ms == NOW
    assert run_commit(make_table(), put(a="b"), now_ms=NOW).metadata.last_updated_ms == NOW


def test_a_snapshot_is_logged_at_its_own_time_within_the_tolerance_of_the_server_clock() -> None:
    logged = append(make_table(), NOW - 700)
    assert [e.timestamp_ms for e in logged.snapshot_log] == [NOW - 700]
    assert [e.timestamp_ms for e in append(make_table(), NOW + 700).snapshot_log] == [NOW]
    assert [e.timestamp_ms for e in append(make_table(), NOW - HOUR).snapshot_log] == [NOW]


@pytest.mark.parametrize("version", [1, 2])
def test_a_writer_with_a_slow_clock_is_not_refused_after_the_commit_of_another(version: int) -> None:
    first = append(make_table(version), NOW)
    second = append(first, NOW - HOUR, now_ms=NOW + 1)
    assert second.current_snapshot_id == 2
    assert [e.timestamp_ms for e in second.snapshot_log] == [NOW, NOW + 1]
    assert java_opens(second)


def test_a_current_snapshot_from_the_future_is_refused_and_blocks_nobody() -> None:
    base = append(make_table(), NOW)
    with pytest.raises(BadRequestException, match="Invalid update timestamp .* Correct the clock of the writer"):
        append(base, NOW + CLOCK_TOLERANCE_MS + 1)
    ahead = append(base, NOW + CLOCK_TOLERANCE_MS)
    assert java_commits(ahead, NOW)
    assert java_opens(append(ahead, NOW + 5, now_ms=NOW + 5))


def test_a_snapshot_from_the_future_on_a_branch_blocks_nobody() -> None:
    ahead = append(append(make_table(), NOW), NOW + YEAR, branch="dev")
    assert (ahead.last_updated_ms, java_commits(ahead, NOW)) == (NOW, True)
    moved = run_commit(ahead, ref("main", 2), now_ms=NOW + 10).metadata
    assert moved.snapshot_log[-1].timestamp_ms == moved.last_updated_ms == NOW + 10


def test_a_snapshot_that_was_never_visible_may_have_any_time() -> None:
    future = snapshot(1, **{"timestamp-ms": NOW + YEAR})
    shown = snapshot(2, seq=2, parent=1, **{"timestamp-ms": NOW})
    new = run_commit(make_table(), future, ref("main", 1), shown, ref("main", 2), now_ms=NOW).metadata
    assert [(e.snapshot_id, e.timestamp_ms) for e in new.snapshot_log] == [(2, NOW)]


def blocked() -> TableMetadata:
    """Return a table that no Java client can write: a writer with a fast clock committed to it."""
    made = append(append(make_table(), NOW - 10), NOW)
    document = json.loads(encode_table_metadata(made))
    document["last-updated-ms"] = document["snapshot-log"][-1]["timestamp-ms"] = NOW + YEAR
    return decode_stored_table_metadata(json.dumps(document).encode())


def disordered() -> TableMetadata:
    """Return a table that no Java client can open: writers with slow clocks committed to branches."""
    return msgspec.structs.replace(append(make_table(), NOW), last_updated_ms=NOW - 2 * CLOCK_TOLERANCE_MS)


@pytest.mark.parametrize("make", [blocked, disordered])
def test_a_blocked_table_heals_with_any_commit(make: Any) -> None:
    base = make()
    assert not (java_opens(base) and java_commits(base, NOW))
    for new in (run_commit(base, put(a="b"), now_ms=NOW + 5).metadata, append(base, NOW - HOUR, now_ms=NOW + 5)):
        assert java_opens(new)
        assert java_commits(new, NOW + 5)
        assert new.last_updated_ms == NOW + 5


@pytest.mark.parametrize("make", [blocked, disordered])
def test_a_blocked_table_is_served_with_times_that_let_java_clients_commit(make: Any) -> None:
    stored = encode_table_metadata(make())
    served = decode_table_metadata(writable_document(stored, NOW))
    assert java_opens(served)
    assert java_commits(served, NOW)
    assert [e.snapshot_id for e in served.snapshot_log] == [e.snapshot_id for e in make().snapshot_log]
    assert [s.members() for s in served.snapshots] == [s.members() for s in make().snapshots]


def test_documents_without_such_times_are_served_as_they_are() -> None:
    stored = encode_table_metadata(append(make_table(), NOW))
    for document in (stored, b'{"view-uuid":"x","versions":[]}', b'{"last-updated-ms":"never"}', b"[]", b"{"):
        assert writable_document(document, NOW) is document


@pytest.mark.parametrize("log", ["snapshot-log", "metadata-log"])
def test_an_adopted_document_keeps_the_order_of_its_times(log: str) -> None:
    document = json.loads(encode_table_metadata(append(append(make_table(), NOW), NOW + 1)))
    document["metadata-log"] = [{"timestamp-ms": NOW, "metadata-file": each} for each in "ab"]
    decode_table_metadata(json.dumps(document).encode())
    document[log][0]["timestamp-ms"] = document[log][1]["timestamp-ms"] + CLOCK_TOLERANCE_MS
    decode_table_metadata(json.dumps(document).encode())
    document[log][0]["timestamp-ms"] += 1
    with pytest.raises(BadRequestException, match=f"the times of {log} and last-updated-ms must not decrease"):
        decode_table_metadata(json.dumps(document).encode())


def test_an_adopted_document_is_not_older_than_its_logs() -> None:
    document = json.loads(encode_table_metadata(append(make_table(), NOW)))
    document["last-updated-ms"] = NOW - CLOCK_TOLERANCE_MS - 1
    with pytest.raises(BadRequestException, match="the times of snapshot-log and last-updated-ms"):
        decode_table_metadata(json.dumps(document).encode())


CLOCKS = st.integers(-YEAR, YEAR) | st.integers(-2 * CLOCK_TOLERANCE_MS, 2 * CLOCK_TOLERANCE_MS)


@given(commits=st.lists(st.tuples(CLOCKS, st.sampled_from(["main", "dev"]), st.integers(0, 90_000)), max_size=12))
def test_writers_with_any_clocks_never_stop_a_writer_with_a_right_one(commits: list[tuple[int, str, int]]) -> None:
    current, now = make_table(), NOW
    for skew, branch, waited in commits:
        now += waited
        try:
            current = append(current, now + skew, branch=branch, now_ms=now)
        except BadRequestException:
            assert skew > CLOCK_TOLERANCE_MS
        assert java_opens(current)
        assert java_commits(current, now)
        assert append(current, now, now_ms=now).last_updated_ms == now
