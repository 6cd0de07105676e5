# SPDX-License-Identifier: Apache-2.0
"""Statistics: numbers of calls of the endpoints, and numbers of tables and views of a warehouse."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from gateway.db.engine.database import Database
from gateway.db.tables.statistics import Counted, add_calls
from gateway.features.statistics.statistics import StatisticsKeeper
from gateway.telemetry.calls import Call, Calls
from tests.support.stack.world import Person, World, error_triple, unique

CALLS = "/management/v1/endpoint-statistics"
ALL = {"type": "all"}


@pytest.fixture(autouse=True)
def _revoke_after_test(world: World) -> Iterator[None]:
    """Revoke carol's grants afterwards: other tests rely on a user without grants."""
    yield
    world.strip(world.carol)


def send(person: Person, warehouse: dict[str, Any], **more: Any) -> httpx.Response:
    return person.post(CALLS, {"warehouse": warehouse, **more})


def counted(answer: httpx.Response, **where: object) -> int:
    """Return the number of calls in a response that have these members."""
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"timestamps", "called-endpoints", "next-page-token", "previous-page-token"}
    assert len(body["timestamps"]) == len(body["called-endpoints"])
    assert body["timestamps"] == sorted(body["timestamps"])
    found = 0
    for hour in body["called-endpoints"]:
        for each in hour:
            assert set(each) <= {
                "count", "http-route", "status-code", "warehouse-id", "warehouse-name", "created-at", "updated-at"
            }  # fmt: skip
            if all(each.get(key.replace("_", "-")) == value for key, value in where.items()):
                found += each["count"]
    return found


def write(world: World, *counts: Counted) -> None:
    """Write counts as a gateway does."""

    async def written() -> None:
        url = world.ready.postgres.replace("postgresql://", "postgresql+asyncpg://", 1)
        database = Database(url, pool_size=1, acquire_timeout=5)
        try:
            async with database.transaction() as connection:
                await add_calls(connection, counts)
        finally:
            await database.close()

    asyncio.run(written())


def test_counts_of_several_processes_are_summed(world: World) -> None:
    """Concurrent writers update the same rows in different orders."""
    route = f"GET /{unique('route')}"
    warehouse = UUID(world.warehouse)
    project = world.project

    async def writer(number: int) -> None:
        url = world.ready.postgres.replace("postgresql://", "postgresql+asyncpg://", 1)
        database = Database(url, pool_size=1, acquire_timeout=60)
        try:
            calls = Calls()
            keeper = StatisticsKeeper(database=database, calls=calls, default_project=project, every=60)
            for round in range(10):
                for status in (200, 404, 403) if (number + round) % 2 else (403, 404, 200):
                    calls.add(Call(project, warehouse, route, status))
                    calls.add(Call(None, None, route, status))
                calls.add(Call("no-such-project", None, route, 200))
                calls.add(Call(project, uuid4(), route, 200))
                await keeper.flush()
            assert not calls.take(), "all counts must have been written"
        finally:
            await database.close()

    async def together() -> None:
        await asyncio.gather(*(writer(number) for number in range(6)))

    asyncio.run(together())
    for status in (200, 403, 404):
        one = {"type": "warehouse-id", "id": world.warehouse}
        assert counted(send(world.admin, one), http_route=route, status_code=status) == 60
        assert counted(send(world.admin, {"type": "unmapped"}), http_route=route, status_code=status) == 60
        assert counted(send(world.admin, ALL), http_route=route, status_code=status) == 120
    picked = send(world.admin, ALL, **{"status-codes": [404]})
    assert (counted(picked, http_route=route), counted(picked, status_code=200)) == (120, 0)
    named = send(world.admin, {"type": "warehouse-id", "id": world.warehouse}).json()["called-endpoints"][-1][0]
    assert named["warehouse-id"] == world.warehouse
    assert named["warehouse-name"] == world.ready.warehouse


async def test_unwritable_counts_are_written_later() -> None:
    database = Database("postgresql+asyncpg://nobody@127.0.0.1:1/none", pool_size=1, acquire_timeout=1)
    calls = Calls()
    call = Call("p", None, "GET /x", 200)
    calls.add(call)
    keeper = StatisticsKeeper(database=database, calls=calls, default_project=None, every=60)
    await keeper.flush()
    calls.add(call)
    assert calls.take() == {call: 2}
    await database.close()


def test_windows_follow_each_other_without_gap_or_overlap(world: World) -> None:
    route = f"GET /{unique('route')}"
    for hours in (1, 2, 25, 26, 49):
        world.sql(
            "insert into endpoint_statistics (project_id, route, status, hour, count) "
            "values ($1, $2, 200, date_trunc('hour', now() - make_interval(hours => $3), 'UTC'), $3)",
            world.project,
            route,
            hours,
        )
    end = datetime.now(UTC).replace(minute=30, second=0, microsecond=0)
    window = {"type": "window", "end": end.isoformat(), "interval": "P1D"}
    answer = send(world.admin, ALL, **{"range-specifier": window})
    seen = [counted(answer, http_route=route)]
    first = answer.json()
    for _ in range(2):
        token = {"type": "page-token", "token": answer.json()["previous-page-token"]}
        answer = send(world.admin, ALL, **{"range-specifier": token})
        seen.append(counted(answer, http_route=route))
    assert sum(seen) == 1 + 2 + 25 + 26 + 49
    assert seen[0] >= 3 and seen[1] >= 25 and seen[2] >= 26
    for _ in range(2):
        token = {"type": "page-token", "token": answer.json()["next-page-token"]}
        answer = send(world.admin, ALL, **{"range-specifier": token})
    assert answer.json()["timestamps"][:-1] == first["timestamps"][:-1]
    assert counted(answer, http_route=route) == seen[0]
    world.sql("delete from endpoint_statistics where route = $1", route)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"warehouse": {"type": "some"}},
        {"warehouse": {"type": "warehouse-id"}},
        {"warehouse": ALL, "status-codes": ["x"]},
        {"warehouse": ALL, "range-specifier": {"type": "window", "end": "2026-01-01T00:00:00", "interval": "P1D"}},
        {"warehouse": ALL, "range-specifier": {"type": "window", "end": "2026-01-01T00:00:00Z", "interval": "P32D"}},
        {"warehouse": ALL, "range-specifier": {"type": "window", "end": "2026-01-01T00:00:00Z", "interval": "PT0S"}},
        {"warehouse": ALL, "range-specifier": {"type": "window", "end": "2026-01-01T00:00:00Z", "interval": "-P1D"}},
        {"warehouse": ALL, "range-specifier": {"type": "window", "end": "0001-01-01T00:00:00Z", "interval": "P1D"}},
        {"warehouse": ALL, "range-specifier": {"type": "window", "end": "9999-12-31T23:00:00Z", "interval": "P1D"}},
        {"warehouse": ALL, "range-specifier": {"type": "page-token", "token": "AAAA"}},
        {"warehouse": ALL, "range-specifier": {"type": "page-token", "token": "kv///////////w"}},
    ],
)
def test_malformed_statistics_request_is_400(world: World, body: dict[str, Any]) -> None:
    assert world.admin.post(CALLS, body).status_code == 400


def test_statistics_need_their_privilege(world: World) -> None:
    world.strip(world.carol)
    one = {"type": "warehouse-id", "id": world.warehouse}
    assert error_triple(send(world.carol, ALL))[:2] == (404, "ProjectNotFound")
    hidden, absent = send(world.carol, one), send(world.carol, {**one, "id": str(uuid4())})
    assert error_triple(hidden)[:2] == error_triple(absent)[:2] == (404, "NoSuchWarehouseException")
    ns = world.namespace()
    world.grant("select", world.carol, "namespace", world.namespace_id(ns))
    assert error_triple(send(world.carol, ALL))[:2] == (403, "ProjectActionForbidden")
    assert error_triple(send(world.carol, one))[:2] == (403, "WarehouseActionForbidden")
    world.grant("describe", world.carol, "warehouse", world.warehouse)
    assert send(world.carol, one).status_code == 200
    assert error_triple(send(world.carol, ALL))[0] == 403
    world.strip(world.carol)


def _stats(person: Person, warehouse: str, **page: str) -> httpx.Response:
    return person.get(f"/management/v1/warehouse/{warehouse}/statistics", params=page)


def test_tables_and_views_are_counted_hourly_after_every_kind_of_change(world: World) -> None:
    def now() -> tuple[int, int]:
        answer = _stats(world.admin, world.warehouse)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert body["warehouse-ident"] == world.warehouse
        latest = body["stats"][0]
        assert set(latest) == {"timestamp", "number-of-tables", "number-of-views", "updated-at"}
        real = world.sql(
            "select count(*) filter (where kind = 'table') as t, count(*) filter (where kind = 'view') as v "
            "from tables where warehouse_id = $1::text::uuid and staged_by is null and deleted_at is null",
            world.warehouse,
        )[0]
        assert (latest["number-of-tables"], latest["number-of-views"]) == (real["t"], real["v"])
        return real["t"], real["v"]

    ns = world.namespace()
    world.table(ns)  # without changes, statistics have no hour
    tables, views = now()
    table = world.table(ns)
    assert now() == (tables + 1, views)
    staged = {"name": unique("t"), "stage-create": True, "schema": {"type": "struct", "fields": []}}
    assert world.admin.post(f"{world.root}/namespaces/{ns}/tables", staged).status_code == 200
    assert now() == (tables + 1, views), "a staged table must not be counted"
    created = {"requirements": [{"type": "assert-create"}], "updates": []}
    world.admin.post(f"{world.root}/namespaces/{ns}/tables/{staged['name']}", created)
    now()
    assert world.admin.delete(f"{table.path}?purgeRequested=false").status_code == 204
    now()


def test_statistics_history_is_paged_latest_first_and_aggregated_once(world: World) -> None:
    project = world.sql("select project_id from warehouses where id = $1::text::uuid", world.warehouse)[0]["project_id"]
    warehouse = str(uuid4())
    world.sql(
        "insert into warehouses (id, project_id, name, name_key, profile, base_key, delete_profile, managed_by, "
        "allowed_format_versions, revision) select $1::text::uuid, $2, $3, $3, profile, $3, delete_profile, "
        "managed_by, allowed_format_versions, gen_random_uuid() from warehouses where id = $4::text::uuid",
        warehouse,
        project,
        unique("counted"),
        world.warehouse,
    )
    world.write_tuple(f"project:{project}", "project", f"warehouse:{warehouse}")
    changes = "insert into warehouse_changes (warehouse_id, tables, views, at) values ($1::text::uuid, $2, $3, $4)"
    try:
        now = datetime.now(UTC)
        for hours, tables, views in ((5, 3, 1), (5, 1, 0), (3, -1, 2), (0, 4, -1)):
            world.sql(changes, warehouse, tables, views, now - timedelta(hours=hours))

        async def sum_up() -> None:
            url = world.ready.postgres.replace("postgresql://", "postgresql+asyncpg://", 1)
            database = Database(url, pool_size=3, acquire_timeout=60)
            keepers = [
                StatisticsKeeper(database=database, calls=Calls(), default_project=None, every=60) for _ in range(3)
            ]
            await asyncio.gather(*(keeper.flush() for keeper in keepers))
            await keepers[0].flush()
            await database.close()

        asyncio.run(sum_up())
        expected = [(7, 2), (3, 3), (4, 1)]
        assert _counts(_stats(world.admin, warehouse)) == expected
        # A late commit of a row for an hour that is already aggregated: it counts in the newest aggregated hour.
        world.sql(changes, warehouse, 1, 0, now - timedelta(hours=4))
        expected[0] = (8, 2)
        assert _counts(_stats(world.admin, warehouse)) == expected, (
            "statistics must include calls that are not aggregated yet"
        )
        asyncio.run(sum_up())
        assert _counts(_stats(world.admin, warehouse)) == expected
        seen: list[tuple[int, int]] = []
        page: dict[str, str] = {}
        while True:
            answer = _stats(world.admin, warehouse, page_size="2", **page)
            seen += _counts(answer)
            if "next-page-token" not in answer.json():
                break
            page = {"page_token": answer.json()["next-page-token"]}
        assert seen == expected
        assert error_triple(_stats(world.admin, warehouse, page_token="x"))[:2] == (400, "InvalidPaginationToken")
        assert _stats(world.admin, warehouse, page_size="0").status_code == 400
    finally:
        world.sql("delete from warehouses where id = $1::text::uuid", warehouse)
        world.delete_tuple(f"project:{project}", "project", f"warehouse:{warehouse}")
    assert world.sql("select 1 from warehouse_statistics where warehouse_id = $1::text::uuid", warehouse) == []


def _counts(answer: httpx.Response) -> list[tuple[int, int]]:
    return [(each["number-of-tables"], each["number-of-views"]) for each in answer.json()["stats"]]


def test_statistics_of_an_invisible_warehouse_are_not_found(world: World) -> None:
    world.strip(world.carol)
    assert error_triple(_stats(world.carol, world.warehouse))[:2] == (404, "NoSuchWarehouseException")
    assert error_triple(_stats(world.admin, str(uuid4())))[:2] == (404, "NoSuchWarehouseException")


def test_calls_are_counted_for_the_warehouse_of_their_object(world: World) -> None:
    """The gateway's processes write their counts every 30 s: wait until both have written."""
    ns = world.namespace()
    route = "GET /catalog/v1/{prefix}/namespaces/{namespace}/views/{view}"
    one = {"type": "warehouse-id", "id": world.warehouse}

    def so_far() -> int:
        return counted(send(world.admin, one), http_route=route, status_code=404)

    before = so_far()
    for _ in range(7):
        assert world.admin.get(f"{world.root}/namespaces/{ns}/views/none").status_code == 404
    _until(lambda: so_far() >= before + 7)


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not done():
        assert time.monotonic() < deadline, "the counts were not written before the deadline"
        time.sleep(1)
