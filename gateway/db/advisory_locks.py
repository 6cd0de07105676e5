# SPDX-License-Identifier: Apache-2.0
"""Turns that processes take with one another, by PostgreSQL's advisory locks.

They make waiting short and protect nothing: what must not happen twice is guarded by rows and their versions. So a turn
that cannot be had soon is gone without, and a process that dies gives its turns back with its connection.
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

from gateway.db.engine import Database

_log = structlog.get_logger("db.turns")

_CLASS: Final = 0x1A4E
_MOST_OBJECTS: Final = 32
"""Locks take room in the server's shared memory: a transaction over more tables than this goes without turns."""

_WAIT = text("select set_config('lock_timeout', :wait, true)")
_TAKE = text("select pg_advisory_xact_lock(:class, :number)")


class SharedTurns:
    """Turns of objects by their ids, for all processes on one database.

    A turn that is held or waited for keeps a connection; there are never more than `most`, so that whoever holds one
    finds the connections it needs to do its work. `wait` (seconds) bounds the waiting.
    """

    def __init__(self, database: Database, *, most: int = 2, wait: float = 5.0) -> None:
        self._database = database
        self._free = most
        self._wait = wait

    @asynccontextmanager
    async def taken(self, ids: Iterable[UUID]) -> AsyncIterator[bool]:
        """Hold the turns of all `ids`; yields whether they could be had."""
        # By the numbers that are locked and not by the ids: two ids may have one number.
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
            # Ends with the connection's transaction, which giving it back to the pool rolls back.
            await connection.execute(_WAIT, {"wait": str(int(self._wait * 1000))})
            for number in numbers:
                await connection.execute(_TAKE, {"class": _CLASS, "number": number})
        except (TimeoutError, SQLAlchemyError, OSError) as without:
            _log.info("turn.skipped", reason=type(without).__name__)
            # Not needed any more while the work is done without the turn.
            await held.aclose()
            return False
        return True


async def _give_back(connection: AsyncConnection) -> None:
    """Never fails: what was done under the turn may be committed by now, whatever became of the turn."""
    try:
        await connection.close()
    except (TimeoutError, SQLAlchemyError, OSError) as lost:
        _log.warning("turn.lost", reason=type(lost).__name__)
