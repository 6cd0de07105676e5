# SPDX-License-Identifier: Apache-2.0
"""Reads of one statement on the driver's own connections, on a real PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
from sqlalchemy import (
    ARRAY,
    Column,
    Integer,
    MetaData,
    Table,
    Text,
    any_,
    bindparam,
    cast,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.access.nouns.server import ServerRef
from gateway.db.engine.database import Database
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.driver_pool import DriverPool, connect_like
from gateway.db.resolver.resolver import DatabaseResolver, frequent_reads
from tests.support.rows.database_waits import wait_for_sleeping
from tests.support.rows.parts import Rows
from tests.support.servers.toxic import Toxic

_PID = DirectRead(select(func.pg_backend_pid().label("pid")))
_OTHERS = text("select pid from pg_stat_activity where application_name = 'lakegate' and pid <> pg_backend_pid()")


@asynccontextmanager
async def _opened(url: str, **changed: Any) -> AsyncIterator[Database]:
    database = Database(url, **{"pool_size": 3, "acquire_timeout": 30.0, **changed})
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def _pool(url: str, **changed: Any) -> AsyncIterator[DriverPool]:
    async with _opened(url) as database:
        connect = connect_like(database.engine, {"server_settings": {"application_name": "lakegate"}})
        pool = DriverPool(connect, **{"size": 2, "acquire_timeout": 30.0, **changed})
        try:
            yield pool
        finally:
            await pool.close()


def _sleep(seconds: float) -> DirectRead[Any]:
    return DirectRead(select(func.pg_backend_pid().label("pid"), func.pg_sleep(seconds).label("slept")))


async def _pid(database: Database) -> int:
    return int((await database.read_one(_PID, {})).pid)


@pytest.mark.parametrize("direct", [True, False])
async def test_values_of_a_read_do_not_depend_on_the_driver(url: str, direct: bool) -> None:
    values = DirectRead(
        select(
            cast(literal_column("""'{"a": [1, null, 2.5, "b"]}'"""), JSONB).label("document"),
            func.string_to_array(bindparam("words", type_=Text), ",", type_=ARRAY(Text)).label("words"),
            cast(bindparam("number", type_=Integer) + 1, Integer).label("number"),
            func.to_timestamp(0).label("time"),
            (literal_column("2") == any_(bindparam("numbers", type_=ARRAY(Integer)))).label("contained"),
        )
    )
    async with _opened(url, direct_reads=direct) as database:
        row = await database.read_one(values, {"words": "a,b", "number": 1, "numbers": [1, 2]})
    assert row.document == {"a": [1, None, 2.5, "b"]}
    assert (list(row.words), row.number, row.time.timestamp(), row.contained) == (["a", "b"], 2, 0.0, True)


async def test_direct_reads_use_a_third_of_the_connections(url: str) -> None:
    async with _opened(url, pool_size=3) as database:
        rows = await asyncio.gather(*(database.read_one(_sleep(0.05), {}) for _ in range(10)))
        assert len({row.pid for row in rows}) == 2
        async with database.read() as connection:
            assert len((await connection.execute(_OTHERS)).all()) == 2
        assert database.engine.pool.size() == 4  # type: ignore[attr-defined]  # the engine's pool is a queue


async def test_single_connection_setting_leaves_all_connections_to_transactions(url: str) -> None:
    """A lock and a transaction need two connections at a time, so none is left for direct reads."""
    async with _opened(url, pool_size=1) as database, database.locked(["one"]), database.transaction():
        async with asyncio.timeout(10):
            with pytest.raises(DatabaseUnavailable):
                async with _opened(url, pool_size=1, acquire_timeout=0.2) as small, small.read(), small.read():
                    await _pid(small)


async def test_read_without_a_free_connection_is_unavailable_after_the_timeout(url: str) -> None:
    async with _opened(url, pool_size=2, acquire_timeout=0.2) as database:
        slow = asyncio.create_task(database.read_one(_sleep(2), {}))
        await wait_for_sleeping(url, 1)
        with pytest.raises(DatabaseUnavailable):
            await _pid(database)
        await slow
        await _pid(database)


async def test_unreachable_database_is_unavailable() -> None:
    async with _opened("postgresql+asyncpg://nobody@127.0.0.1:1/nothing") as database:
        with pytest.raises(DatabaseUnavailable):
            await _pid(database)


async def test_statement_timeout_is_unavailable_and_closes_the_connection(url: str) -> None:
    async with _opened(url, pool_size=2, statement_timeout=0.3) as database:
        before = await _pid(database)
        with pytest.raises(DatabaseUnavailable):
            await database.read_one(_sleep(5), {})
        assert await _pid(database) != before


async def test_stale_connections_after_a_restart_fail_no_request(url: str) -> None:
    between = Toxic(urlsplit(url).port or 0)
    there = url.replace(f":{between.target}", f":{between.port}")
    try:
        async with _opened(there) as database:
            async with database.transaction() as connection:
                await Rows().insert(connection)

            async def occupy() -> None:
                async with database.read() as connection:
                    await connection.execute(text("select pg_sleep(0.3)"))

            await asyncio.gather(*(occupy() for _ in range(3)), *(database.read_one(_sleep(0.3), {}) for _ in range(2)))
            await asyncio.to_thread(between.become, "gone")
            with pytest.raises(DatabaseUnavailable):
                await _pid(database)
            await asyncio.to_thread(between.become, "well")
            resolver = DatabaseResolver(database)
            for _ in range(3):
                resolution = await resolver.resolve([ServerRef()], Actor.user("oidc~somebody"))
                assert ServerRef() in resolution.rows
    finally:
        await asyncio.to_thread(between.close)


@pytest.mark.parametrize("signal", ["pg_terminate_backend", "pg_cancel_backend"])
async def test_read_in_flight_is_repeated_only_if_its_connection_was_lost(url: str, signal: str) -> None:
    async with _opened(url) as database:
        await _pid(database)
        slow = asyncio.create_task(database.read_one(_sleep(2), {}))
        await wait_for_sleeping(url, 1)
        async with database.read() as connection:
            sleeping = "select pid from pg_stat_activity where wait_event = 'PgSleep'"
            ended = (await connection.execute(text(sleeping))).scalar_one()
            await connection.execute(text(f"select {signal}({ended})"))
        if signal == "pg_terminate_backend":
            assert (await slow).pid != ended
        else:
            with pytest.raises(DatabaseUnavailable):
                await slow


@pytest.mark.parametrize(("end", "kept"), [("answered", 2), ("cancelled", 0)])
async def test_pool_keeps_only_connections_of_completed_reads(url: str, end: str, kept: int) -> None:
    """A connection that is neither kept nor closed would stay open at the database and use up its limit."""
    # The cancelled read must not be complete by then.
    slow = _sleep(3 if end == "cancelled" else 0.3)
    async with _opened(url, pool_size=3) as database:
        reads = [asyncio.create_task(database.read_one(slow, {})) for _ in range(2)]
        if end == "cancelled":
            await wait_for_sleeping(url, 2)
            for read in reads:
                read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        async with database.read() as connection, asyncio.timeout(60):
            while len((await connection.execute(_OTHERS)).all()) != kept:
                await asyncio.sleep(0.02)


async def test_read_after_a_changed_column_type_returns_the_new_values(url: str) -> None:
    changed = Table("changed_type", MetaData(), Column("value", Integer))
    read = DirectRead(select(changed.c.value))
    async with _opened(url, pool_size=2) as database, database.autocommit() as connection:
        await connection.execute(text("create table changed_type as select 7 as value"))
        before = [row.value for row in await database.read_all(read, {})]
        await connection.execute(text("alter table changed_type alter column value type text using 'seven'"))
        after = [row.value for row in await database.read_all(read, {})]
        await connection.execute(text("drop table changed_type"))
    assert (before, after) == ([7], ["seven"])


async def test_frequent_reads_are_prepared_before_the_first_request(url: str) -> None:
    prepared = DirectRead(
        select(func.count().label("number")).select_from(text("pg_prepared_statements where statement like '%clock%'"))
    )
    async with _opened(url) as database:
        await database.prepare(frequent_reads())
        row = await database.read_one(prepared, {})
    # The read of the clock alone has no such alias.
    assert row.number >= len(frequent_reads()) - 1


async def test_rejected_parameter_fails_without_a_retry_and_spares_other_reads(url: str) -> None:
    number = DirectRead(select((bindparam("number", type_=Integer) + 1).label("next")))
    async with _opened(url, pool_size=2) as database:
        with pytest.raises(asyncpg.DataError):
            await database.read_one(number, {"number": "no number"})
        assert (await database.read_one(number, {"number": 1})).next == 2


async def test_pool_replaces_a_connection_that_is_too_old(url: str) -> None:
    now = [0.0]
    async with _pool(url, recycle_seconds=10.0, clock=lambda: now[0]) as pool:
        pids = []
        for at in (0.0, 9.0, 11.0):
            now[0] = at
            [row] = await _PID.all(pool, {})
            pids.append(row.pid)
    assert pids[0] == pids[1] != pids[2]


async def test_outdated_connections_are_not_used_again(url: str) -> None:
    async with _pool(url) as pool:
        idle, used = await pool.acquire(), await pool.acquire()
        pool.release(idle)
        pool.outdate()
        assert pool.take() is None
        assert idle.is_closed()
        assert not used.is_closed()
        pool.release(used)
        assert used.is_closed()
        [row] = await _PID.all(pool, {})
        assert row.pid


async def test_pool_serves_waiting_callers_in_their_order(url: str) -> None:
    async with _pool(url, size=1) as pool:
        held = await pool.acquire()
        order: list[int] = []

        async def one(number: int) -> None:
            connection = await pool.acquire()
            order.append(number)
            await asyncio.sleep(0)
            pool.release(connection)

        waiting = [asyncio.create_task(one(number)) for number in range(5)]
        await asyncio.sleep(0)
        pool.release(held)
        # A caller that arrives now does not overtake them.
        assert pool.take() is None
        await asyncio.gather(*waiting)
        assert order == [0, 1, 2, 3, 4]
        assert pool.in_use == 0


@pytest.mark.parametrize("handed", ["connection", "place"])
async def test_connection_handed_to_a_cancelled_caller_goes_to_the_next(url: str, handed: str) -> None:
    async with _pool(url, size=1) as pool:
        held = await pool.acquire()
        first, second = asyncio.create_task(pool.acquire()), asyncio.create_task(pool.acquire())
        await asyncio.sleep(0)
        if handed == "connection":
            pool.release(held)
        else:
            pool.discard(held)
        first.cancel()
        async with asyncio.timeout(30):
            pool.release(await second)
        assert first.cancelled()
        assert pool.in_use == 0


async def test_failed_opening_leaves_its_place_to_the_next_caller(url: str) -> None:
    async with _opened(url) as database:
        connect = connect_like(database.engine, {})
        failures = [OSError("refused"), OSError("refused")]

        async def unreliable() -> asyncpg.Connection:
            await asyncio.sleep(0)
            if failures:
                raise failures.pop()
            return await connect()

        pool = DriverPool(unreliable, size=1, acquire_timeout=30)
        results = await asyncio.gather(*(_PID.all(pool, {}) for _ in range(3)), return_exceptions=True)
        await pool.close()
    assert [isinstance(each, DatabaseUnavailable) for each in results] == [True, True, False]


async def test_closed_pool_refuses_waiting_and_new_callers(url: str) -> None:
    async with _pool(url, size=1) as pool:
        held = await pool.acquire()
        waiting = asyncio.create_task(pool.acquire())
        await asyncio.sleep(0)
        await pool.close()
        for late in (waiting, pool.acquire()):
            with pytest.raises(DatabaseUnavailable):
                await late
        pool.release(held)
        assert held.is_closed()
