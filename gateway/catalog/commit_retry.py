# SPDX-License-Identifier: Apache-2.0
"""Races for a pointer: start over when somebody was faster, and find out what became of a COMMIT without answer."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.access.operation import Operation
from gateway.access.permit import Permit
from gateway.db import tables
from gateway.db.advisory_locks import SharedTurns
from gateway.db.engine import Database
from gateway.iceberg.errors import CommitFailedException, CommitStateUnknownException

Answer = TypeVar("Answer")

_ATTEMPTS = 6

_PATIENCE_SECONDS = 20.0
"""How long a commit waits for those before it in its process: clients wait longer, and learn that nothing happened."""

_CONTENDED_SECONDS = 5.0
"""How long after a lost race the commits of a table take turns with those of other processes from the start."""

_MOST_CONTENDED = 1000


class LostRace(Exception):
    """Another commit moved the pointer first; nothing was changed."""


class CommitQueue:
    """Lets the commits of one table come one after the other.

    Writers would otherwise mostly lose to each other, each with a file written in vain. In this process they queue.
    Between processes they take turns (`shared`) only where commits meet: a table with one writer pays nothing for it.
    Turns make races rare; the pointer's version decides, as it does for correctness in any case.
    """

    def __init__(self, shared: SharedTurns | None = None, *, patience: float = _PATIENCE_SECONDS) -> None:
        self._locks: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()
        self._shared = shared
        self._patience = patience
        self._contended: dict[UUID, float] = {}

    @asynccontextmanager
    async def _taken(self, ids: Sequence[UUID]) -> AsyncIterator[bool]:
        """Hold the turns of all `ids` in this process; yields whether one had to be waited for, so that the row has to
        be read again. Raises CommitFailedException when the wait is too long.
        """
        async with AsyncExitStack() as held:
            yield await self._queue(held, ids)

    async def _queue(self, held: AsyncExitStack, ids: Sequence[UUID]) -> bool:
        waited = False
        try:
            async with asyncio.timeout(self._patience):
                # In one order for everybody, so that two transactions cannot wait for each other.
                for id in sorted(set(ids)):
                    lock = self._locks.setdefault(id, asyncio.Lock())
                    waited = waited or lock.locked()
                    await held.enter_async_context(lock)
        except TimeoutError:
            raise CommitFailedException("Commit failed: too many commits wait for this table; try again.") from None
        return waited

    async def _among_processes(self, held: AsyncExitStack, ids: Sequence[UUID]) -> bool:
        """Take the turns of other processes too; whether they could be had."""
        return self._shared is not None and await held.enter_async_context(self._shared.taken(ids))

    def _met(self, ids: Sequence[UUID]) -> bool:
        """Whether commits of these tables met those of other processes lately."""
        now = time.monotonic()
        return any(now - self._contended.get(id, -_CONTENDED_SECONDS) < _CONTENDED_SECONDS for id in ids)

    def _meet(self, ids: Sequence[UUID]) -> None:
        if len(self._contended) > _MOST_CONTENDED:
            self._contended.clear()
        self._contended.update(dict.fromkeys(ids, time.monotonic()))


async def until_won(turns: CommitQueue, ids: Sequence[UUID], attempt: Callable[[bool], Awaitable[Answer]]) -> Answer:
    """The answer of the first attempt that loses no race; each is told whether it has to read again first.

    Raises CommitFailedException (409) when others are faster again and again, or the queue is too long.
    """
    async with turns._taken(ids) as again, AsyncExitStack() as held:
        alone = (again or turns._met(ids)) and await turns._among_processes(held, ids)
        again = again or alone
        for number in range(_ATTEMPTS):
            try:
                return await attempt(again)
            except LostRace:
                turns._meet(ids)
                again = True
                if not alone:
                    alone = await turns._among_processes(held, ids)
                if not alone:
                    # Full jitter: writers that met once do not meet again in step.
                    await asyncio.sleep(random.uniform(0, 0.02 * 2**number))  # noqa: S311 - protects nothing
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
