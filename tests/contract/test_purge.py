# SPDX-License-Identifier: Apache-2.0
"""Drops with and without file deletion, and staged tables that were never created."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.stack.world import SCHEMA, Table, World, error_triple, unique

pytestmark = pytest.mark.servers


def _until(true: Callable[[], bool], description: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, description
        time.sleep(0.2)


def _prefix(world: World, location: str) -> str:
    return location.removeprefix(f"s3://{world.bucket}/").rstrip("/") + "/"


def _keys(world: World, location: str) -> set[str]:
    return {key for key, _ in world.objects(_prefix(world, location))}


def _fill(world: World, location: str, count: int = 3) -> None:
    for number in range(count):
        world.s3.put_object(Bucket=world.bucket, Key=f"{_prefix(world, location)}data/{number}.parquet", Body=b"x")


def _task(world: World, table_uuid: str, queue: str = "tabular_purge") -> Any:
    rows = world.sql("select * from tasks where entity_id = $1 and queue = $2", table_uuid, queue)
    return rows[0] if rows else None


def _purged(world: World, table: Table) -> None:
    _until(lambda: _task(world, table.uuid)["status"] == "succeeded", "the purge did not end")


def _audit(world: World, operation: str, needle: str) -> list[dict[str, Any]]:
    rows = world.sql(
        "select convert_from(record, 'UTF8') as r from audit_log where operation = $1 "
        "and convert_from(record, 'UTF8') like '%' || $2 || '%'",
        operation,
        needle,
    )
    return [json.loads(row["r"]) for row in rows]


@pytest.mark.parametrize("query", ["", "?purgeRequested=true"])
def test_drop_deletes_files_by_default(world: World, ns: str, query: str) -> None:
    table, neighbour = world.table(ns), world.table(ns)
    for each in (table, neighbour):
        _fill(world, each.location)
    kept = _keys(world, neighbour.location)
    assert world.admin.delete(f"{table.path}{query}").status_code == 204
    _purged(world, table)
    assert _keys(world, table.location) == set()
    assert _keys(world, neighbour.location) == kept


def test_a_drop_without_purge_leaves_every_file(world: World, ns: str) -> None:
    table = world.table(ns)
    _fill(world, table.location)
    before = _keys(world, table.location)
    assert world.admin.delete(f"{table.path}?purgeRequested=false").status_code == 204
    assert _task(world, table.uuid) is None
    time.sleep(4)
    assert _keys(world, table.location) == before


def test_purge_deletes_more_than_one_page_of_files(world: World, ns: str) -> None:
    table = world.table(ns)
    _fill(world, table.location, 1200)
    assert world.admin.delete(f"{table.path}?purgeRequested=true").status_code == 204
    _purged(world, table)
    assert _keys(world, table.location) == set()
    assert _audit(world, "purge_table", table.uuid)[-1]["detail"]["deleted"] == "1201"


def test_purge_is_audited_as_a_system_action(world: World, ns: str) -> None:
    table = world.table(ns)
    assert world.admin.delete(f"{table.path}?purgeRequested=true").status_code == 204
    _purged(world, table)
    [record] = _audit(world, "purge_table", table.uuid)
    assert record["actor"] == {"kind": "system", "id": "system~tabular_purge"}
    assert record["decisions"][0]["outcome"] == "allowed"
    assert record["detail"]["location"] == table.location


def test_purge_keeps_files_of_a_recreated_table(world: World, ns: str) -> None:
    table = world.table(ns)
    _fill(world, table.location)
    assert world.admin.delete(f"{table.path}?purgeRequested=true").status_code == 204
    again = world.table(ns, table.name)
    _fill(world, again.location)
    _purged(world, table)
    assert again.location != table.location
    assert len(_keys(world, again.location)) == 4


def test_purge_of_a_renamed_table_keeps_the_new_table_of_its_name(world: World, ns: str) -> None:
    table = world.table(ns)
    moved = unique("moved")
    body = {
        "source": {"namespace": [ns], "name": table.name},
        "destination": {"namespace": [ns], "name": moved},
    }
    assert world.admin.post(f"{world.root}/tables/rename", body).status_code == 204
    other = world.table(ns, table.name)
    _fill(world, other.location)
    assert world.admin.delete(f"{world.root}/namespaces/{ns}/tables/{moved}?purgeRequested=true").status_code == 204
    _purged(world, table)
    assert _keys(world, table.location) == set()
    assert len(_keys(world, other.location)) == 4


def test_location_is_blocked_until_its_files_are_deleted(world: World, ns: str) -> None:
    base = world.table(ns).location.rsplit("/", 1)[0]
    location = f"{base}/{unique('place')}"
    table = world.table(ns, location=location)
    assert world.admin.delete(f"{table.path}?purgeRequested=true").status_code == 204
    # As if every worker were busy: the task is scheduled and has not begun.
    world.sql(
        "update tasks set status = 'scheduled', finished_at = null, scheduled_for = now() + interval '1 hour' "
        "where entity_id = $1",
        table.uuid,
    )
    # The keys of the dropped table also block the location (`test_retired_locations.py`): here they have expired.
    world.sql("update retired_locations set keys_until = clock_timestamp() where location = $1", location)
    for lake_location in (location, f"{location}/inside"):
        made = world.admin.post(
            f"{world.root}/namespaces/{ns}/tables", {"name": unique("t"), "schema": SCHEMA, "location": lake_location}
        )
        assert error_triple(made)[:2] == (409, "LocationAlreadyTaken")
    world.sql("update tasks set scheduled_for = now() where entity_id = $1", table.uuid)
    _purged(world, table)
    assert world.table(ns, location=location).location == location


def test_gc_enabled_false_keeps_the_files(world: World, ns: str) -> None:
    table = world.table(ns, properties={"gc.enabled": "false"})
    assert world.admin.delete(f"{table.path}?purgeRequested=true").status_code == 204
    assert _task(world, table.uuid) is None
    assert len(_keys(world, table.location)) == 1


def test_a_repeated_drop_schedules_one_purge(world: World, ns: str) -> None:
    table = world.table(ns)
    key = {"Idempotency-Key": "0190d9f2-6b1e-7b5c-9f3a-3c1d2e4f5a6b"}
    assert [world.admin.delete(table.path, headers=key).status_code for _ in range(2)] == [204, 204]
    assert len(world.sql("select 1 from tasks where entity_id = $1", table.uuid)) == 1


def test_task_of_a_dead_worker_is_retried_up_to_five_attempts(world: World, ns: str) -> None:
    table = world.table(ns)
    _fill(world, table.location)
    assert world.admin.delete(f"{table.path}?purgeRequested=false").status_code == 204
    world.sql(
        "insert into tasks (id, queue, warehouse_id, entity_type, entity_id, status, attempt, heartbeat_at, payload) "
        "values (gen_random_uuid(), 'tabular_purge', $1, 'table', $2, 'running', 2, now() - interval '3 minutes', $3)",
        world.warehouse,
        table.uuid,
        json.dumps({"location": table.location, "location_key": table.location.lower() + "/"}),
    )
    _purged(world, table)
    assert _task(world, table.uuid)["attempt"] == 3
    assert _keys(world, table.location) == set()
    world.sql(
        "update tasks set status = 'running', attempt = 5, finished_at = null, "
        "heartbeat_at = now() - interval '3 minutes' where entity_id = $1",
        table.uuid,
    )
    _until(lambda: _task(world, table.uuid)["status"] == "failed", "the task did not fail")


def test_failed_task_is_retried_later_and_records_the_reason(world: World, ns: str) -> None:
    table = world.table(ns)
    assert world.admin.delete(f"{table.path}?purgeRequested=false").status_code == 204
    outside = "s3://some-other-bucket/x"
    world.sql(
        "insert into tasks (id, queue, warehouse_id, entity_type, entity_id, payload) "
        "values (gen_random_uuid(), 'tabular_purge', $1, 'table', $2, $3)",
        world.warehouse,
        table.uuid,
        json.dumps({"location": outside, "location_key": outside + "/"}),
    )
    _until(lambda: _task(world, table.uuid)["last_error"] is not None, "the task did not fail")
    task = _task(world, table.uuid)
    assert task["status"] == "scheduled"
    assert "not below the base location" in task["last_error"]
    assert world.sql("select scheduled_for > now() as later from tasks where id = $1", task["id"])[0]["later"]
    world.sql("delete from tasks where id = $1", task["id"])


def _stage(world: World, ns: str) -> dict[str, Any]:
    made = world.admin.post(
        f"{world.root}/namespaces/{ns}/tables", {"name": unique("t"), "schema": SCHEMA, "stage-create": True}
    )
    assert made.status_code == 200, made.text
    metadata: dict[str, Any] = made.json()["metadata"]
    return metadata


def _expire(world: World, uuid: str) -> None:
    world.sql("update tasks set scheduled_for = now() where entity_id = $1 and queue = 'expire_staged_table'", uuid)


def test_staged_table_never_created_expires_after_a_day_with_its_files(world: World, ns: str) -> None:
    staged = _stage(world, ns)
    uuid, location = staged["table-uuid"], staged["location"]
    [due] = world.sql(
        "select extract(epoch from scheduled_for - now()) as seconds from tasks where entity_id = $1", uuid
    )
    assert 86000 < due["seconds"] <= 86400
    _fill(world, location)
    _expire(world, uuid)
    _until(
        lambda: _task(world, uuid) is not None and _task(world, uuid)["status"] == "succeeded",
        "the staged table did not expire",
    )
    assert _keys(world, location) == set()
    assert world.sql("select 1 from tables where id = $1", uuid) == []


def test_staged_table_that_was_created_does_not_expire(world: World, ns: str) -> None:
    staged = _stage(world, ns)
    name = world.sql("select name from tables where id = $1", staged["table-uuid"])[0]["name"]
    path = f"{world.root}/namespaces/{ns}/tables/{name}"
    body = {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": staged["table-uuid"]},
            {"action": "set-location", "location": staged["location"]},
            {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
        ],
    }
    made: httpx.Response = world.admin.post(path, body)
    assert made.status_code == 200, made.text
    _expire(world, staged["table-uuid"])
    _until(
        lambda: _task(world, staged["table-uuid"], "expire_staged_table")["status"] == "succeeded",
        "the expiry task did not run",
    )
    assert _task(world, staged["table-uuid"]) is None
    assert world.admin.get(path).status_code == 200


def test_namespace_drop_removes_staged_tables(world: World, ns: str) -> None:
    staged = _stage(world, ns)
    _fill(world, staged["location"])
    assert world.admin.delete(f"{world.root}/namespaces/{ns}").status_code == 204
    _until(lambda: _keys(world, staged["location"]) == set(), "files of a staged table were left")
