# SPDX-License-Identifier: Apache-2.0
"""Races for a pointer: start over when somebody was faster, and find out what became of a COMMIT without answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

from gateway.access.operation import Operation
from gateway.access.outage import CommitUnknown, DatabaseUnavailable
from gateway.access.permit import Permit
from gateway.db import tables
from gateway.db.engine import Database
from gateway.iceberg.errors import CommitFailedException, CommitStateUnknownException

Answer = TypeVar("Answer")

_ATTEMPTS = 6


class LostRace(Exception):
    """Another commit moved the pointer first; nothing was changed."""


class Turns:
    """Lets the commits of one table in this process come one after the other.

    Writers of one process would otherwise mostly lose to each other, each with a file written in vain. Between
    processes the pointer's version decides, as it does for correctness in any case.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def _taken(self, ids: Iterable[UUID]) -> AsyncIterator[bool]:
        """Hold the turns of all `ids`; yields whether one had to be waited for, so that the row has to be read
        again.
        """
        async with AsyncExitStack() as held:
            waited = False
            # In one order for everybody, so that two transactions cannot wait for each other.
            for id in sorted(set(ids)):
                lock = self._locks.setdefault(id, asyncio.Lock())
                waited = waited or lock.locked()
                await held.enter_async_context(lock)
            yield waited


async def until_won(turns: Turns, ids: Iterable[UUID], attempt: Callable[[bool], Awaitable[Answer]]) -> Answer:
    """The answer of the first attempt that loses no race; each is told whether it has to read again first.

    Raises CommitFailedException (409) when others are faster again and again.
    """
    async with turns._taken(ids) as waited:
        for number in range(_ATTEMPTS):
            try:
                return await attempt(waited or number > 0)
            except LostRace:
                # Full jitter: writers that met once do not meet again in step.
                await asyncio.sleep(random.uniform(0, 0.02 * 2**number))  # noqa: S311 - spreads load, protects nothing
    raise CommitFailedException("Commit failed: other commits were faster each time; try again.")


async def learn_outcome(
    database: Database, permit: Permit[Operation], id: UUID, *, from_version: int, written: str, unknown: CommitUnknown
) -> None:
    """Return when the change that moved `id` on from `from_version` to the file `written` happened after all.

    Raises LostRace when it did not, and CommitStateUnknownException when nobody can tell: the database is away, or the
    object went on since and keeps no log of its files.
    """
    try:
        async with database.transaction() as connection:
            await tables.wait_for_writers(connection, id)
            now = await tables.pointer(connection, id)
    except (DatabaseUnavailable, CommitUnknown):
        raise _unknown() from unknown
    if now is not None and (now.metadata_location == written or written.encode() in (now.metadata or b"")):
        permit.trail.settle()
        return
    if now is None or now.version > from_version:
        raise _unknown() from unknown
    raise LostRace from unknown


def _unknown() -> CommitStateUnknownException:
    return CommitStateUnknownException("The database went away during the commit; its outcome is unknown.")
