# SPDX-License-Identifier: Apache-2.0
"""Order concurrent work of several processes with PostgreSQL's advisory locks, only to save retries.

The locks protect nothing: rows and their versions guard against conflicts. So a caller that cannot get a lock in time
proceeds without it. A process that ends releases its locks with its connection.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final
from uuid import UUID

import structlog
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.engine.database import Database

_log = structlog.get_logger("db.turns")

_CLASS: Final = 0x1A4E
_MOST_OBJECTS: Final = 32
"""Limit of the locks of one transaction. Locks use the server's shared memory; a transaction over more tables takes
none.
"""

_WAIT = text("select set_config('lock_timeout', :wait, true)")
_TAKE = text("select pg_advisory_xact_lock(:class, :number)")


class AdvisoryLocks:
    """Advisory locks on objects by their ids, for all processes that use one database.

    A lock that is held or waited for occupies a connection. `max_connections` limits these connections, so that enough
    connections remain for the work of lock holders. `wait` is the longest waiting time in seconds.
    """

    def __init__(self, database: Database, *, max_connections: int = 2, wait: float = 5.0) -> None:
        self._database = database
        self._free = max_connections
        self._wait = wait

    @asynccontextmanager
    async def taken(self, ids: Iterable[UUID]) -> AsyncIterator[bool]:
        """Hold the locks of all `ids` during the block.

        Yield True if they were acquired, False if the block runs without them.
        """
        # The locks are on the numbers, so duplicates are removed after the conversion: two ids may have the same
        # number.
        numbers = sorted({int.from_bytes(id.bytes[-4:], "big", signed=True) for id in ids})
        if not self._free or len(numbers) > _MOST_OBJECTS:
            yield False
            return
        self._free -= 1
        try:
            async with AsyncExitStack() as held:
                yield await self._take(held, numbers)
        finally:
            self._free += 1

    async def _take(self, held: AsyncExitStack, numbers: Iterable[int]) -> bool:
        try:
            connection = await self._database.engine.connect()
            held.push_async_callback(_give_back, connection)
            # The setting ends with the transaction, which the pool rolls back when the connection returns to it.
            await connection.execute(_WAIT, {"wait": str(int(self._wait * 1000))})
            for number in numbers:
                await connection.execute(_TAKE, {"class": _CLASS, "number": number})
        except (TimeoutError, SQLAlchemyError, OSError) as without:
            _log.info("turn.skipped", reason=type(without).__name__)
            # The connection is not needed while the block runs without the lock.
            await held.aclose()
            return False
        return True


async def _give_back(connection: AsyncConnection) -> None:
    """Close a connection without raising an error, because the work in the block may be committed already."""
    try:
        await connection.close()
    except (TimeoutError, SQLAlchemyError, OSError) as lost:
        _log.warning("turn.lost", reason=type(lost).__name__)
