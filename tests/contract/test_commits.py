# SPDX-License-Identifier: Apache-2.0
"""Commits to one table: requirements, conflicts, and concurrent writers."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.stack.world import World, error_of, error_triple

_UNUSED_UUID = "00000000-0000-0000-0000-000000000000"


def _snapshot(location: str, id: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "action": "add-snapshot",
        "snapshot": {
            "snapshot-id": id,
            "timestamp-ms": int(time.time() * 1000),
            "sequence-number": id,
            "summary": {"operation": "append"},
            "manifest-list": f"{location}/metadata/snap-{id}.avro",
            "schema-id": 0,
            **more,
        },
    }


def test_commit_returns_the_new_metadata_and_its_location(world: World, ns: str) -> None:
    table = world.table(ns)
    done = world.commit(world.bob, table.path, {"action": "set-properties", "updates": {"a": "1"}})
    assert done.status_code == 200
    body = done.json()
    assert set(body) == {"metadata-location", "metadata"}
    assert body["metadata-location"].startswith(f"{table.location}/metadata/00001-")
    assert world.admin.get(table.path).json()["metadata"] == body["metadata"]


def test_an_append_moves_the_branch(world: World, ns: str) -> None:
    table = world.table(ns)
    ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1}
    expected = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}
    first = world.commit(world.bob, table.path, _snapshot(table.location), ref, requirements=(expected,))
    assert first.status_code == 200, first.text
    assert first.json()["metadata"]["current-snapshot-id"] == 1
    stale = world.commit(world.bob, table.path, _snapshot(table.location, 2), requirements=(expected,))
    assert error_triple(stale)[1] == "CommitFailedException"


@pytest.mark.parametrize(
    ("requirement", "text"),
    [
        ({"type": "assert-create"}, "Requirement failed: table already exists"),
        ({"type": "assert-table-uuid", "uuid": _UNUSED_UUID}, "Requirement failed: UUID does not match"),
        ({"type": "assert-current-schema-id", "current-schema-id": 9}, "Requirement failed: current schema changed"),
        (
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 9},
            "Requirement failed: last assigned field id changed",
        ),
        (
            {"type": "assert-default-spec-id", "default-spec-id": 9},
            "Requirement failed: default partition spec changed",
        ),
        (
            {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 9},
            "Requirement failed: last assigned partition id changed",
        ),
        (
            {"type": "assert-default-sort-order-id", "default-sort-order-id": 9},
            "Requirement failed: default sort order changed",
        ),
        (
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 9},
            "Requirement failed: branch or tag main is missing, expected 9",
        ),
    ],
)
def test_failed_requirement_has_the_message_clients_expect(
    world: World, ns: str, requirement: dict[str, Any], text: str
) -> None:
    table = world.table(ns)
    refused = world.admin.post(table.path, {"requirements": [requirement], "updates": []})
    status, type, message = error_triple(refused)
    assert (status, type) == (409, "CommitFailedException")
    assert message.startswith(text)


def test_eight_writers_with_retries_lose_no_update(world: World, ns: str) -> None:
    table = world.table(ns)

    def write(writer: int) -> None:
        for number in range(4):
            for _ in range(50):
                update = {"action": "set-properties", "updates": {f"w{writer}.{number}": "kept"}}
                answer = world.commit(world.admin, table.path, update)
                if answer.status_code == 200:
                    break
                assert answer.status_code == 429 or error_of(answer)["type"] == "CommitFailedException"
            else:
                pytest.fail("a writer did not succeed within its retries")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    loaded = world.admin.get(table.path).json()
    assert {f"w{w}.{n}" for w in range(8) for n in range(4)} <= set(loaded["metadata"]["properties"])
    named = {entry["metadata-file"] for entry in loaded["metadata"]["metadata-log"]} | {loaded["metadata-location"]}
    prefix = f"s3://{world.bucket}/"
    stored = {prefix + key for key, _ in world.objects(table.location.removeprefix(prefix) + "/metadata/")}
    assert stored == named, "commits that lost a race must leave no unreferenced file"


def test_a_commit_that_changes_nothing_writes_nothing(world: World, ns: str) -> None:
    table = world.table(ns)
    before = world.objects(table.location.removeprefix(f"s3://{world.bucket}/"))
    same = world.commit(world.admin, table.path, {"action": "set-location", "location": table.location})
    assert same.status_code == 200
    assert same.json()["metadata-location"] == table.answer["metadata-location"]
    assert world.objects(table.location.removeprefix(f"s3://{world.bucket}/")) == before


def test_commit_body_naming_another_table_is_refused(world: World, ns: str) -> None:
    table, other = world.table(ns), world.table(ns)
    body = {
        "identifier": {"namespace": [ns], "name": other.name},
        "requirements": [],
        "updates": [{"action": "set-properties", "updates": {"a": "b"}}],
    }
    assert error_triple(world.admin.post(table.path, body))[:2] == (400, "TableIdentifierMismatch")
    body["identifier"] = {"namespace": [ns.upper()], "name": table.name.upper()}
    assert world.admin.post(table.path, body).status_code == 200


_HOUR = 3_600_000


def _append_at(world: World, table: Any, id: int, clock_ms: int) -> Any:
    """Append to main as a writer whose clock shows `clock_ms`."""
    added = _snapshot(table.location, id, **{"timestamp-ms": clock_ms})
    if id > 1:
        added["snapshot"]["parent-snapshot-id"] = id - 1
    ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id}
    return world.commit(world.bob, table.path, added, ref)


def test_clocks_of_writers_stop_no_other_writer(world: World, ns: str) -> None:
    table = world.table(ns)
    now = int(time.time() * 1000)
    assert _append_at(world, table, 1, now).status_code == 200
    fast = _append_at(world, table, 2, now + _HOUR)
    assert (fast.status_code, error_of(fast)["type"]) == (400, "BadRequestException")
    assert "Correct the clock of the writer" in error_of(fast)["message"]
    slow = _append_at(world, table, 2, now - _HOUR)
    assert slow.status_code == 200, slow.text
    done = _append_at(world, table, 3, int(time.time() * 1000))
    assert done.status_code == 200, done.text
    metadata = done.json()["metadata"]
    times = [*(entry["timestamp-ms"] for entry in metadata["snapshot-log"]), metadata["last-updated-ms"]]
    assert times == sorted(times)
    assert abs(times[-1] - time.time() * 1000) < 30_000


def test_a_table_that_a_fast_clock_blocked_is_served_and_committed_with_times_of_the_server(
    world: World, ns: str
) -> None:
    table = world.table(ns)
    assert _append_at(world, table, 1, int(time.time() * 1000)).status_code == 200
    # The document as an earlier version stored it after the commit of a writer with a fast clock. Under another
    # location no process has it in its cache.
    ahead = int(time.time() * 1000) + 24 * _HOUR
    world.sql(
        "update tables set metadata_location = metadata_location || $2, metadata = convert_to(regexp_replace("
        "convert_from(metadata, 'UTF8'), '(\"(?:last-updated-ms|timestamp-ms)\":)\\d+', '\\1' || $3, 'g'), 'UTF8') "
        "where metadata_location like $1 || '/%'",
        table.location,
        ".moved",
        str(ahead),
    )
    served = world.admin.get(table.path).json()["metadata"]
    latest = int(time.time() * 1000) + 60_000
    assert served["last-updated-ms"] < latest
    assert [entry["timestamp-ms"] < latest for entry in served["snapshot-log"]] == [True]
    done = _append_at(world, table, 2, int(time.time() * 1000))
    assert done.status_code == 200, done.text
    assert [entry["timestamp-ms"] < latest for entry in done.json()["metadata"]["snapshot-log"]] == [True, True]
