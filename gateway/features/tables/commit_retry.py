# SPDX-License-Identifier: Apache-2.0
"""Retry commits when another commit changed the table first.

If the response to COMMIT is lost, find out whether the database committed.
"""

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
from gateway.access.door.permit import Permit
from gateway.access.operation import Operation
from gateway.db.engine.advisory_locks import AdvisoryLocks
from gateway.db.engine.database import Database
from gateway.db.tables import tables
from gateway.iceberg.errors import CommitFailedException, CommitStateUnknownException

Answer = TypeVar("Answer")

_ATTEMPTS = 6

_QUEUE_TIMEOUT_SECONDS = 20.0
"""The longest wait of a commit for earlier commits to the same table in its process. It is shorter than the timeouts of
clients, so that they learn that nothing was changed.
"""

_CONTENDED_SECONDS = 5.0
"""The time after a lost race in which commits to the table acquire the lock between processes before their first
attempt.
"""

_MOST_CONTENDED = 1000


class CommitConflict(Exception):
    """Another commit swapped the table's pointer first. Nothing was changed."""


class CommitQueue:
    """A queue that serializes the commits to each table.

    Without the queue, most concurrent writers would find the pointer changed, after each has written a useless metadata
    file. Within a process, commits to a table always queue. Between processes, they use advisory locks (`shared`) only
    after such a conflict, so that a table with one writer has no cost. The queue only makes conflicts rare. Correctness
    depends on the comparison of the pointer's version.
    """

    def __init__(self, shared: AdvisoryLocks | None = None, *, timeout_seconds: float = _QUEUE_TIMEOUT_SECONDS) -> None:
        self._locks: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()
        self._shared = shared
        self._timeout = timeout_seconds
        self._contended: dict[UUID, float] = {}

    @asynccontextmanager
    async def _locked(self, ids: Sequence[UUID]) -> AsyncIterator[bool]:
        """Hold this process's locks for all `ids`. Yields True if another commit held one of them: then the row must be
        read again. Raises CommitFailedException on timeout.
        """
        async with AsyncExitStack() as held:
            yield await self._queue(held, ids)

    async def _queue(self, held: AsyncExitStack, ids: Sequence[UUID]) -> bool:
        waited = False
        try:
            async with asyncio.timeout(self._timeout):
                # All commits lock in the same order, so that two transactions cannot deadlock.
                for id in sorted(set(ids)):
                    lock = self._locks.setdefault(id, asyncio.Lock())
                    waited = waited or lock.locked()
                    await held.enter_async_context(lock)
        except TimeoutError:
            raise CommitFailedException(
                "Commit failed: too many commits to this table are waiting. Try again."
            ) from None
        return waited

    async def _lock_between_processes(self, held: AsyncExitStack, ids: Sequence[UUID]) -> bool:
        """Acquire the advisory locks for `ids` that all processes share. Return True if they were acquired."""
        return self._shared is not None and await held.enter_async_context(self._shared.taken(ids))

    def _is_contended(self, ids: Sequence[UUID]) -> bool:
        """Return True if a commit to one of these tables had a conflict in the last `_CONTENDED_SECONDS`."""
        now = time.monotonic()
        return any(now - self._contended.get(id, -_CONTENDED_SECONDS) < _CONTENDED_SECONDS for id in ids)

    def _mark_contended(self, ids: Sequence[UUID]) -> None:
        if len(self._contended) > _MOST_CONTENDED:
            self._contended.clear()
        self._contended.update(dict.fromkeys(ids, time.monotonic()))


async def retry_conflicts(
    queue: CommitQueue, ids: Sequence[UUID], attempt: Callable[[bool], Awaitable[Answer]]
) -> Answer:
    """Call `attempt` until it raises no CommitConflict, and return its result. Its argument is True if it must read the
    row again.

    Raises CommitFailedException (409) if all attempts have conflicts, or on a timeout in the queue.
    """
    async with queue._locked(ids) as reread, AsyncExitStack() as held:
        exclusive = (reread or queue._is_contended(ids)) and await queue._lock_between_processes(held, ids)
        reread = reread or exclusive
        for number in range(_ATTEMPTS):
            try:
                return await attempt(reread)
            except CommitConflict:
                queue._mark_contended(ids)
                reread = True
                if not exclusive:
                    exclusive = await queue._lock_between_processes(held, ids)
                if not exclusive:
                    # Full jitter, so that writers that collided once do not retry at the same time.
                    await asyncio.sleep(random.uniform(0, 0.02 * 2**number))  # noqa: S311 - jitter, not a secret
    raise CommitFailedException("Commit failed: concurrent commits changed the table during each attempt. Try again.")


async def determine_outcome(
    database: Database, permit: Permit[Operation], id: UUID, *, from_version: int, written: str, unknown: CommitUnknown
) -> None:
    """Return if the change of `id` was committed: from version `from_version` to the metadata file `written`.

    Raises CommitConflict if it was not. Raises CommitStateUnknownException if the outcome cannot be determined: the
    database is unavailable, or the object has changed again and keeps no log of its metadata files.
    """
    try:
        async with database.transaction() as connection:
            await tables.wait_for_writers(connection, id)
            now = await tables.pointer(connection, id)
    except (DatabaseUnavailable, CommitUnknown):
        raise _unknown_outcome() from unknown
    if now is not None and (now.metadata_location == written or written.encode() in (now.metadata or b"")):
        permit.pending_audit.settle()
        return
    if now is None or now.version > from_version:
        raise _unknown_outcome() from unknown
    raise CommitConflict from unknown


def _unknown_outcome() -> CommitStateUnknownException:
    return CommitStateUnknownException(
        "The connection to the database was lost during the commit, so the outcome of the commit is unknown. Load "
        "the table or view again to see it."
    )
