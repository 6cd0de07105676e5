# SPDX-License-Identifier: Apache-2.0
"""Decisions are revalidated before a commit or vending if rights were revoked while the request waited.

The tests force the wait: they lock a row that the commit changes, or the table with the warehouse's secret.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import asyncpg
import httpx
import pytest

from tests.support.stack.world import SCHEMA, Loop, Person, World, error_triple, unique

_WAITING = (
    "select count(*) as n from pg_stat_activity where application_name = 'lakegate' and $1 = any(pg_blocking_pids(pid))"
)


@contextmanager
def held(world: World, statement: str) -> Iterator[int]:
    """Hold the locks of `statement` until the block ends; yield the PID of the locking database process."""
    loop = Loop()

    async def begin() -> asyncpg.Connection:
        connection = await asyncpg.connect(world.ready.postgres)
        await connection.execute("begin")
        await connection.execute(statement)
        return connection

    connection = loop.run(begin())
    try:
        yield connection.get_server_pid()
    finally:
        loop.run(connection.close())
        loop.close()


def _meanwhile(
    world: World, lock: str, send: Callable[[], httpx.Response], change: Callable[[], object]
) -> httpx.Response:
    """Return the response to a request that was authorized before `change` and continued after it."""
    with ThreadPoolExecutor(1) as pool:
        with held(world, lock) as holder:
            requested: Future[httpx.Response] = pool.submit(send)
            deadline = time.monotonic() + 30
            while not world.sql(_WAITING, holder)[0]["n"]:
                assert time.monotonic() < deadline, "the request did not begin to wait before the deadline"
                assert not requested.done(), requested.result().text
                time.sleep(0.05)
            change()
            assert not requested.done(), "the request must wait for the concurrent change"
        return requested.result(60)


_ROW = "select 1 from tables where table_uuid = '{}' for no key update"


@pytest.fixture
def analyst(world: World) -> Iterator[Person]:
    """Yield a user without grants; revoke the test's grants afterwards."""
    world.strip(world.analyst)
    yield world.analyst
    world.strip(world.analyst)


@pytest.fixture
def fresh(world: World) -> str:
    """Return the catalog path of a new warehouse whose secret no worker process has decrypted yet."""
    body = {
        "warehouse-name": unique("again"),
        "storage-profile": {**world.ready.s3.profile, "bucket": world.bucket, "key-prefix": unique("again")},
        "storage-credential": {
            "type": "s3",
            "credential-type": "access-key",
            "access-key-id": world.ready.s3.access_key,
            "secret-access-key": world.ready.s3.secret_key,
        },
    }
    made = world.admin.post("/management/v1/warehouse", body)
    assert made.status_code == 201, made.text
    return f"/catalog/v1/{made.json()['warehouse-id']}"


@pytest.mark.threat("LG-DIS-14")
def test_commit_is_refused_if_modify_is_revoked_while_it_waits(world: World, ns: str, analyst: Person) -> None:
    table, id = world.table(ns), world.namespace_id(ns)
    for privilege in ("describe", "modify"):
        world.grant(privilege, analyst, "namespace", id)
    change = {"action": "set-properties", "updates": {"too": "late"}}
    lock = _ROW.format(table.uuid)
    answer = _meanwhile(
        world,
        lock,
        lambda: world.commit(analyst, table.path, change),
        lambda: world.revoke("modify", analyst, "namespace", id),
    )
    assert answer.status_code == 403, answer.text
    assert "too" not in world.admin.get(table.path).json()["metadata"]["properties"]


def test_commit_succeeds_if_another_user_loses_rights_while_it_waits(world: World, ns: str, analyst: Person) -> None:
    table, id = world.table(ns), world.namespace_id(ns)
    world.grant("modify", analyst, "namespace", id)
    world.grant("describe", world.steward, "namespace", id)
    change = {"action": "set-properties", "updates": {"just": "in time"}}
    lock = _ROW.format(table.uuid)
    answer = _meanwhile(
        world,
        lock,
        lambda: world.commit(analyst, table.path, change),
        lambda: world.revoke("describe", world.steward, "namespace", id),
    )
    assert answer.status_code == 200, answer.text
    assert world.admin.get(table.path).json()["metadata"]["properties"]["just"] == "in time"


@pytest.fixture
def vending(world: World, fresh: str) -> tuple[str, str]:
    """Return (path of a table in the fresh warehouse, id of its namespace).

    The setup must not leave the secret in the cache of every worker process.
    """
    assert world.admin.post(f"{fresh}/namespaces", {"namespace": ["n"]}).status_code == 200
    made = world.admin.post(f"{fresh}/namespaces/n/tables", {"name": "t", "schema": SCHEMA})
    assert made.status_code == 200, made.text
    found = world.admin.get(f"{fresh}/namespaces/n").json()["properties"]["namespace_id"]
    # Replace the secret by a copy with another id, as a credential change does: no worker process has decrypted it.
    world.sql(
        "with again as (insert into secrets (id, sealed) select gen_random_uuid(), s.sealed from secrets s "
        "join warehouses w on w.secret_id = s.id where w.id = $1::text::uuid returning id) "
        "update warehouses set secret_id = (select id from again) where id = $1::text::uuid",
        fresh.rsplit("/", 1)[1],
    )
    return f"{fresh}/namespaces/n/tables/t", found


_SECRETS = "lock table secrets in access exclusive mode"


@pytest.mark.threat("LG-DIS-14")
def test_select_revoked_before_vending_yields_no_key(world: World, vending: tuple[str, str], analyst: Person) -> None:
    path, id = vending
    world.grant("select", analyst, "namespace", id)
    answer = _meanwhile(
        world,
        _SECRETS,
        lambda: analyst.get(f"{path}/credentials"),
        lambda: world.revoke("select", analyst, "namespace", id),
    )
    assert answer.status_code == 404, answer.text
    assert "secret-access-key" not in answer.text


def test_modify_revoked_before_vending_yields_no_write_key(
    world: World, vending: tuple[str, str], analyst: Person
) -> None:
    path, id = vending
    for privilege in ("select", "modify"):
        world.grant(privilege, analyst, "namespace", id)
    answer = _meanwhile(
        world, _SECRETS, lambda: analyst.get(path), lambda: world.revoke("modify", analyst, "namespace", id)
    )
    assert answer.status_code == 503, answer.text
    assert "secret-access-key" not in answer.text
    again = analyst.get(path).json()["storage-credentials"][0]
    key = again["prefix"].removeprefix(f"s3://{world.bucket}/").rstrip("/") + "/data/written.parquet"
    with pytest.raises(Exception, match="AccessDenied"):
        world.store_of(again["config"]).put_object(Bucket=world.bucket, Key=key, Body=b"x")


def test_key_ends_with_a_grant_shortened_before_vending(
    world: World, vending: tuple[str, str], analyst: Person
) -> None:
    path, id = vending
    warehouse = path.split("/")[3]
    world.grant("select", analyst, "namespace", id)
    grants = f"/management/v1/warehouse/{warehouse}/namespace/{id}/grants"
    [end] = [row["t"] for row in world.sql("select (now() + interval '20 minutes')::text as t")]
    entry = {"privilege": "select", "principal": {"user": analyst.id}, "expires-at": end.replace(" ", "T") + ":00"}

    def shorten() -> None:
        done = world.admin.post(grants, {"writes": [entry]})
        assert done.status_code == 204, done.text

    answer = _meanwhile(world, _SECRETS, lambda: analyst.get(f"{path}/credentials"), shorten)
    assert answer.status_code == 503, answer.text
    assert analyst.get(f"{path}/credentials").status_code == 200


@pytest.mark.parametrize(
    ("left", "expected"), [("describe", (403, "TableActionForbidden")), (None, (404, "TaskNotFound"))]
)
def test_task_action_is_refused_if_its_right_is_revoked_while_it_waits(
    world: World, ns: str, analyst: Person, left: str | None, expected: tuple[int, str]
) -> None:
    table, kept = world.table(ns), world.table(ns)
    for privilege in ("describe", "modify"):
        world.grant(privilege, analyst, "table", table.uuid)
    world.grant("describe", analyst, "table", kept.uuid)
    [row] = world.sql(
        "insert into tasks (id, queue, warehouse_id, entity_type, entity_id, payload, scheduled_for) values "
        "(gen_random_uuid(), 'soft_deletion', $1, 'table', $2, '{}', now() + interval '1 day') returning id::text",
        world.warehouse,
        table.uuid,
    )
    body = {"action": {"action-type": "cancel"}, "task-ids": [row["id"]]}

    def revoke() -> None:
        for privilege in {"describe", "modify"} - {left}:
            world.revoke(privilege, analyst, "table", table.uuid)

    try:
        answer = _meanwhile(
            world,
            f"select 1 from tasks where id = '{row['id']}' for no key update",
            lambda: analyst.post(f"/management/v1/warehouse/{world.warehouse}/task/control", body),
            revoke,
        )
        assert error_triple(answer)[:2] == expected, answer.text
        assert table.uuid not in answer.text
        [after] = world.sql("select status from tasks where id = $1", row["id"])
        assert after["status"] == "scheduled"
    finally:
        world.sql("delete from tasks where id = $1", row["id"])
