# SPDX-License-Identifier: Apache-2.0
"""A deadlock of two transactions: one completes, the other is rolled back and reports that nothing was changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text

from gateway.db.engine.database import Database, Deadlocked, retry_serialization

_TAKE = text("select pg_advisory_xact_lock(:number)")


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    made = Database(url, pool_size=4, acquire_timeout=30)
    yield made
    await made.close()


async def _take(database: Database, first: int, second: int, met: asyncio.Barrier | None) -> None:
    async with database.transaction() as connection:
        await connection.execute(_TAKE, {"number": first})
        if met is not None:
            await met.wait()
        await connection.execute(_TAKE, {"number": second})


async def test_deadlock_victim_gets_a_deadlock_error(database: Database) -> None:
    met = asyncio.Barrier(2)
    ends = await asyncio.gather(_take(database, 1, 2, met), _take(database, 2, 1, met), return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["Deadlocked", "NoneType"]


async def test_retried_deadlock_victim_succeeds(database: Database) -> None:
    met = asyncio.Barrier(2)
    tries = {1: 0, 2: 0}

    async def attempt(first: int, second: int) -> None:
        tries[first] += 1
        await _take(database, first, second, met if tries[first] == 1 else None)

    await asyncio.gather(retry_serialization(lambda: attempt(1, 2)), retry_serialization(lambda: attempt(2, 1)))
    assert sorted(tries.values()) == [1, 2]


async def test_permanent_deadlock_victim_fails_after_all_retries() -> None:
    async def attempt() -> None:
        raise Deadlocked("for another one")

    with pytest.raises(Deadlocked):
        await retry_serialization(attempt)
