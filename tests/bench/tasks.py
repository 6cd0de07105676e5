# SPDX-License-Identifier: Apache-2.0
"""Measure how many background tasks one process completes in a second, with a floor of the same run.

It uses a separate PostgreSQL, so that no gateway takes the tasks. The floor is the minimum for a task: two transactions
of one statement each (one takes it, one completes it), by as many coroutines on as many connections.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from sqlalchemy import text

from gateway.db.engine.database import Database
from gateway.db.migrate import run_migrations
from gateway.db.tasks import task_runs
from gateway.db.tasks.task_runs import Task
from gateway.db.tasks.tasks import Queue
from gateway.features.tasks.worker import Worker
from lakegate.local import account, postgres, ready
from lakegate.local.children import Children
from tests.support.rows.parts import Rows, free_port

_SLOTS = 4
_ADD = """
    insert into tasks (id, queue, warehouse_id, entity_type, entity_id, payload, status, scheduled_for, finished_at)
    select gen_random_uuid(), 'tabular_purge', :warehouse, 'table', gen_random_uuid(), '{}', :status,
        clock_timestamp() + make_interval(secs => :later), case when :status = 'succeeded' then clock_timestamp() end
    from generate_series(1, :count)
"""


@dataclass(frozen=True, slots=True)
class Throughput:
    """Medians over the rounds; `ratio` is the median of the rounds' ratios."""

    per_second: float
    floor_per_second: float
    ratio: float


def throughput(count: int, rounds: int, *, ended: int = 0, waiting: int = 0) -> Throughput:
    """Measure `count` tasks whose handlers only complete them.

    The table also contains `ended` completed tasks and `waiting` tasks that are due tomorrow.
    """
    return asyncio.run(_throughput(count, rounds, ended, waiting))


async def _throughput(count: int, rounds: int, ended: int, waiting: int) -> Throughput:
    async with _database() as (database, warehouse):
        await _add(database, warehouse, ended, "succeeded")
        await _add(database, warehouse, waiting, "scheduled", later=86_400)
        async with database.transaction() as connection:
            await connection.execute(text("create table floor (id int primary key, state int not null default 0)"))
            await connection.execute(text("insert into floor select generate_series(1, :n)"), {"n": count})
            await connection.execute(text("analyze"))
        ours, floors = [], []
        for _ in range(rounds):
            await _add(database, warehouse, count, "scheduled")
            ours.append(count / await _tasks(database, count))
            floors.append(count / await _floor(database, count))
    ratios = [one / other for one, other in zip(ours, floors, strict=True)]
    return Throughput(statistics.median(ours), statistics.median(floors), statistics.median(ratios))


async def _add(database: Database, warehouse: UUID, count: int, status: str, *, later: int = 0) -> None:
    values = {"warehouse": warehouse, "count": count, "status": status, "later": later}
    async with database.transaction() as connection:
        await connection.execute(text(_ADD), values)


async def _tasks(database: Database, count: int) -> float:
    """Return the seconds until a worker has completed all of them."""
    done, left = asyncio.Event(), count

    async def end(task: Task) -> None:
        nonlocal left
        async with database.transaction() as connection:
            await task_runs.finish(connection, task)
        left -= 1
        if not left:
            done.set()

    worker = Worker(database, {Queue.TABULAR_PURGE: end}, slots={Queue.TABULAR_PURGE: _SLOTS})
    begun = time.perf_counter()
    running = asyncio.create_task(worker.run())
    await done.wait()
    took = time.perf_counter() - begun
    running.cancel()
    await asyncio.wait([running])
    return took


async def _floor(database: Database, count: int) -> float:
    """Return the seconds of two updates of each of `count` rows, each in its own transaction."""
    left = iter(range(1, count + 1))

    async def work() -> None:
        for number in left:
            for _ in range(2):
                async with database.transaction() as connection:
                    await connection.execute(text("update floor set state = state + 1 where id = :n"), {"n": number})

    begun = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(_SLOTS)))
    return time.perf_counter() - begun


@asynccontextmanager
async def _database() -> AsyncIterator[tuple[Database, UUID]]:
    """Create a migrated database with one warehouse. Return the database and the id of the warehouse."""
    with tempfile.TemporaryDirectory(prefix="lakegate-bench-", ignore_cleanup_errors=True) as scratch:
        data = Path(scratch) / "postgres"
        (Path(scratch) / "logs").mkdir()
        try:
            async with Children(Path(scratch) / "logs") as children:
                made, port, rows = ready.generate(), free_port(), Rows()
                await postgres.Postgres(data, port, made, programs=None, fast=False).start(children)
                url = postgres.url(postgres.GATEWAY_ROLE, made.postgres_gateway, port)
                url = url.replace("postgresql:", "postgresql+asyncpg:")
                await run_migrations(url)
                database = Database(url, pool_size=_SLOTS + 1, acquire_timeout=10, statement_timeout=120)
                async with database.transaction() as connection:
                    await rows.insert(connection)
                yield database, rows.warehouses[0]
                await database.close()
        finally:
            account.remove_data(data)
