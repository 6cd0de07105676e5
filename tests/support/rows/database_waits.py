# SPDX-License-Identifier: Apache-2.0
"""Waits for statements of other connections."""

from __future__ import annotations

import asyncio

import asyncpg


async def wait_for_sleeping(url: str, count: int) -> None:
    """Wait until this number of connections execute `pg_sleep`."""
    asleep = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'"
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        while await connection.fetchval(asleep) < count:
            await asyncio.sleep(0.02)
    finally:
        await connection.close()
