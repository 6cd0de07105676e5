# SPDX-License-Identifier: Apache-2.0
"""Several processes aggregate the number of tables concurrently, while tables are created. PostgreSQL is real."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from gateway.db.engine.database import Database
from gateway.db.tables import statistics
from tests.support.rows.parts import Parts, Rows

pytestmark = pytest.mark.servers

_PROCESSES = 6
_WRITERS = 3
_CHANGES = 1000

_CHANGE = text("insert into warehouse_changes (warehouse_id, tables, views) values (:id, 1, 0)")
_TOTAL = text("select tables from warehouse_statistics where warehouse_id = :id order by hour desc limit 1")


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    made = Database(parts.database_url, pool_size=8, acquire_timeout=30)
    yield made
    await made.close()


async def _sum_up(database: Database) -> None:
    async with database.transaction() as connection:
        await statistics.sum_up(connection)


async def test_concurrent_counting_misses_no_table(database: Database) -> None:
    rows, writing = Rows(), _WRITERS
    counted = rows.warehouses[1]
    async with database.transaction() as connection:
        await rows.insert(connection)

    async def write() -> None:
        nonlocal writing
        for _ in range(_CHANGES):
            async with database.transaction() as connection:
                await connection.execute(_CHANGE, {"id": counted})
        writing -= 1

    async def count() -> None:
        while writing:
            await _sum_up(database)

    await asyncio.gather(*(write() for _ in range(_WRITERS)), *(count() for _ in range(_PROCESSES)))
    await _sum_up(database)
    async with database.read() as connection:
        assert (await connection.execute(_TOTAL, {"id": counted})).scalar_one() == _WRITERS * _CHANGES
