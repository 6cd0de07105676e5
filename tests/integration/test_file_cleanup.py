# SPDX-License-Identifier: Apache-2.0
"""Races between the cleanup of unreferenced files and a change that is about to reference one. PostgreSQL is real."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from gateway.db.engine.database import Database
from gateway.db.tables import pending_files
from gateway.db.tables.pending_files import PendingFiles
from tests.support.rows.parts import Parts, Rows

FILE = "s3://bucket/view/metadata/00001-a.metadata.json"
HOUR = 3600.0


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    """Yield a database with one pending file that is two hours old."""
    made, rows = Database(parts.database_url, pool_size=4, acquire_timeout=30), Rows()
    async with made.transaction() as connection:
        await connection.execute(text("truncate pending_files"))
        await rows.insert(connection)
        await pending_files.add(connection, rows.warehouses[0], [FILE])
        await connection.execute(text("update pending_files set written_at = now() - interval '2 hours'"))
    yield made
    await made.close()


async def _overdue(database: Database) -> list[str]:
    async with database.read() as connection:
        return [row.location for row in await pending_files.overdue(connection, seconds=HOUR, limit=10)]


async def test_overdue_file_is_claimed(database: Database) -> None:
    assert await _overdue(database) == [FILE]
    async with database.transaction() as connection:
        assert await pending_files.claim(connection, [FILE], seconds=HOUR) == [FILE]


async def test_overdue_file_locked_by_a_change_is_not_deleted(
    database: Database,
) -> None:
    assert await _overdue(database) == [FILE]
    await PendingFiles(database).keep(FILE)
    async with database.transaction() as connection:
        assert await pending_files.claim(connection, [FILE], seconds=HOUR) == []
    assert await _overdue(database) == []


async def test_change_waits_for_a_file_deletion_and_finds_no_file(database: Database) -> None:
    files = PendingFiles(database)
    async with database.transaction() as connection:
        assert await pending_files.claim(connection, [FILE], seconds=HOUR) == [FILE]
        keeping = asyncio.create_task(files.keep(FILE))
        waits = text("select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'update pending%'")
        async with asyncio.timeout(60):
            while not (await connection.execute(waits)).all():
                await asyncio.sleep(0.02)
                # Otherwise this transaction keeps its first snapshot of `pg_stat_activity`.
                await connection.execute(text("select pg_stat_clear_snapshot()"))
        assert not keeping.done()
        await pending_files.forget(connection, [FILE])
    await keeping
    assert not await files.noted(FILE)
