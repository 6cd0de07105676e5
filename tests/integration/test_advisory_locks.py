# SPDX-License-Identifier: Apache-2.0
"""Advisory locks between processes, and the rows of files that nothing references, on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.db.engine.advisory_locks import AdvisoryLocks
from gateway.db.engine.database import Database
from gateway.db.tables import pending_files
from lakegate.local.ready import Ready
from tests.contract import conftest as shared

stack = shared.stack


@asynccontextmanager
async def _process(stack: Ready) -> AsyncIterator[Database]:
    """Yield a database with a connection pool of its own, as a separate process has."""
    url = stack.postgres.replace("postgresql://", "postgresql+asyncpg://", 1)
    database = Database(url, pool_size=3, acquire_timeout=30)
    try:
        yield database
    finally:
        await database.close()


@pytest.fixture
async def here(stack: Ready) -> AsyncIterator[Database]:
    async with _process(stack) as database:
        yield database


@pytest.fixture
async def there(stack: Ready) -> AsyncIterator[Database]:
    async with _process(stack) as database:
        yield database


# ---- advisory locks --------------------------------------------------------------------------------------------------


async def test_two_processes_share_a_lock_and_skip_it_after_the_timeout(here: Database, there: Database) -> None:
    id = uuid4()
    mine, theirs = AdvisoryLocks(here), AdvisoryLocks(there, wait=0.3)
    async with mine.taken([id]) as had:
        assert had
        began = time.monotonic()
        async with theirs.taken([id]) as acquired:
            assert not acquired
        assert 0.25 < time.monotonic() - began < 60
        async with theirs.taken([uuid4()]) as other:
            assert other, "the lock of another table must be free"
    async with theirs.taken([id]) as acquired:
        assert acquired, "the released lock must be available"


async def test_waiting_process_gets_a_released_lock(here: Database, there: Database) -> None:
    id = uuid4()
    order: list[str] = []

    async def wait() -> None:
        async with AdvisoryLocks(there, wait=60).taken([id]) as had:
            assert had
            order.append("second")

    async with AdvisoryLocks(here).taken([id]):
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0.3)
        order.append("first")
    await waiting
    assert order == ["first", "second"]


async def test_dying_process_releases_its_lock(here: Database, there: Database) -> None:
    id = uuid4()
    async with AdvisoryLocks(here).taken([id]) as had:
        assert had
        async with there.transaction() as connection:
            dead = "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and classid = :class"
            await connection.execute(text(dead), {"class": 0x1A4E})
        async with AdvisoryLocks(there, wait=60).taken([id]) as acquired:
            assert acquired
    # The loss of the lock alone does not make the holder's work fail.


async def test_locks_use_a_bounded_number_of_connections(here: Database) -> None:
    locks = AdvisoryLocks(here, max_connections=1)
    async with locks.taken([uuid4()]) as one, locks.taken([uuid4()]) as two:
        assert (one, two) == (True, False)
    async with locks.taken([uuid4()]) as again:
        assert again


async def test_lock_order_of_several_tables_prevents_deadlocks(here: Database, there: Database) -> None:
    # Locks are ordered by the last bytes of the ids; both processes must use the same order.
    ids = [UUID(int=number) for number in (1, 2, 3)]

    async def again_and_again(locks: AdvisoryLocks, named: list[UUID]) -> None:
        for _ in range(20):
            async with locks.taken(named) as had:
                assert had

    await asyncio.wait_for(
        asyncio.gather(
            again_and_again(AdvisoryLocks(here, wait=60), ids),
            again_and_again(AdvisoryLocks(there, wait=60), list(reversed(ids))),
        ),
        120,
    )


# ---- files -----------------------------------------------------------------------------------------------------------


async def _noted(database: Database, count: int) -> list[str]:
    async with database.transaction() as connection:
        warehouse = (await connection.execute(text("select id from warehouses limit 1"))).scalar_one()
        locations = [f"s3://nowhere/{uuid4()}.metadata.json" for _ in range(count)]
        await pending_files.add(connection, warehouse, locations)
    return locations


async def _forget(database: Database, locations: list[str]) -> None:
    async with database.transaction() as connection:
        await pending_files.forget(connection, locations)


async def test_file_of_a_running_change_is_not_cleaned_up(here: Database, there: Database) -> None:
    held, free = await _noted(here, 2)
    try:
        async with here.transaction() as change:
            await pending_files.hold(change, [held])
            async with there.transaction() as sweep:
                assert await pending_files.claim(sweep, [held, free], seconds=0) == [free]
    finally:
        await _forget(here, [held, free])


async def test_change_waits_for_file_cleanup_and_then_fails(here: Database, there: Database) -> None:
    [location] = await _noted(here, 1)

    async def change() -> None:
        async with here.transaction() as connection:
            await pending_files.hold(connection, [location])

    async with there.transaction() as sweep:
        assert await pending_files.claim(sweep, [location], seconds=0) == [location]
        changing = asyncio.create_task(change())
        await asyncio.sleep(0.3)
        assert not changing.done()
        await pending_files.forget(sweep, [location])
    with pytest.raises(DatabaseUnavailable):
        await changing


async def test_many_files_of_one_warehouse_delay_no_other_warehouse(here: Database) -> None:
    """A limited number of each warehouse is returned, so that an unreachable store does not fill the list forever."""
    locations = await _noted(here, 3)
    try:
        async with here.transaction() as connection:
            ages = "update pending_files set written_at = now() - interval '30 minutes' where location = any(:l)"
            await connection.execute(text(ages), {"l": locations})
            found = await pending_files.overdue(connection, seconds=1200, limit=2)
            per: dict[UUID, int] = {}
            for row in found:
                per[row.warehouse_id] = per.get(row.warehouse_id, 0) + 1
            assert set(per.values()) <= {1, 2}
            assert 2 in per.values()
            assert not {row.location for row in await pending_files.overdue(connection, seconds=7200, limit=100)} & set(
                locations
            )
    finally:
        await _forget(here, locations)
