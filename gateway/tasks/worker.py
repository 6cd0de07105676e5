# SPDX-License-Identifier: Apache-2.0
"""The worker: takes tasks, some of each queue at a time, keeps their hearts beating, and tries again what failed."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol
from uuid import uuid4

import structlog

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable
from gateway.db import task_queues, task_runs
from gateway.db.engine import Connection, Database
from gateway.db.task_runs import STALE_SECONDS, Task, TaskLost, TaskStopped
from gateway.db.tasks import Queue, Status
from gateway.iceberg.errors import CatalogError

_log = structlog.get_logger("tasks.worker")

Handler = Callable[[Task], Awaitable[None]]
"""Does a task and ends it in the transaction that records it (`attempts.finish`). One that takes long tells how far it
is (`tasks/reports.py`), and so hears that it shall stop.
"""

_DATABASE_AWAY: Final = (DatabaseUnavailable, CommitUnknown)
_AWAY_CODES: Final = (429, 503)
_BEATS_PER_SILENCE: Final = 4
_BOOKS_EVERY_SECONDS: Final = 30.0
_FIRST_RETRY_SECONDS: Final = 0.5
_GOODBYE_SECONDS: Final = 1.5


class TaskObserver(Protocol):
    """Is told how tasks go, for metrics."""

    def task_attempted(self, queue: str, outcome: str, seconds: float) -> None:
        """An attempt ended: "ended", "failed", "given_up", "interrupted", "stopped" or "lost"."""
        ...

    def tasks_counted(self, counts: Mapping[tuple[str, str], int]) -> None:
        """How many tasks have not ended, by queue and status; what is not named is none."""
        ...


class Worker:
    """One process's worker: of each queue at most `slots` tasks at a time, one where nothing is said, and none for 0.

    `every` is the mean pause when there is nothing to do, `beat` the longest time between heartbeats, `stale` the
    silence after which others take a task over where nothing else is configured; all in seconds.
    """

    def __init__(
        self,
        database: Database,
        handlers: Mapping[Queue, Handler],
        *,
        observer: TaskObserver | None = None,
        slots: Mapping[Queue, int] | None = None,
        every: float = 2.0,
        beat: float = 20.0,
        stale: float = STALE_SECONDS,
    ) -> None:
        self._database = database
        self._handlers = handlers
        self._observer = observer
        self._slots = {queue: 1 if slots is None else slots.get(queue, 1) for queue in handlers}
        self._every = every
        self._beat = beat
        self._stale = stale
        self._busy: Counter[Queue] = Counter()
        self._freed = asyncio.Event()
        self._kept_books_at = -_BOOKS_EVERY_SECONDS

    async def run(self) -> None:
        """Work for as long as the process lives. Tasks that are under way when it ends are given back."""
        async with asyncio.TaskGroup() as begun:
            while True:
                self._freed.clear()
                if not await self._begin(begun):
                    # A task that ends frees a slot, so whatever waited for one is begun at once.
                    spread = self._every * random.uniform(0.5, 1.5)  # noqa: S311 - spreads load, protects nothing
                    # Not `wait_for`, which in Python 3.11 forgets a cancellation that comes together with what it
                    # waits for.
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(spread):
                            await self._freed.wait()

    async def work_once(self) -> bool:
        """Take and do one task; False when none is due."""
        task = await self._take(list(self._handlers))
        if task is None:
            return False
        await self._attempt(task)
        return True

    async def keep_books(self) -> None:
        """Schedule what recurs and what was left while it stopped, and count what waits; at most every half a minute.

        Raises the database's outages.
        """
        if time.monotonic() - self._kept_books_at < _BOOKS_EVERY_SECONDS:
            return
        async with self._database.transaction() as connection:
            await task_queues.schedule_cleanups(connection)
            await task_runs.release(connection, stale_seconds=self._stale)
            counts = await task_queues.count(connection)
        self._kept_books_at = time.monotonic()
        if self._observer is not None:
            self._observer.tasks_counted(counts)

    async def _begin(self, begun: asyncio.TaskGroup) -> bool:
        """Begin one task in a slot of its queue; False when none is due or no slot is free."""
        try:
            await self.keep_books()
            free = [queue for queue, slots in self._slots.items() if self._busy[queue] < slots]
            task = await self._take(free) if free else None
        except _DATABASE_AWAY as outage:
            _log.warning("tasks.postponed", reason=str(outage))
            return False
        except Exception:
            # The worker must outlive every surprise; the surprise itself is told in full.
            _log.exception("tasks.failed")
            return False
        if task is None:
            return False
        self._busy[task.queue] += 1
        begun.create_task(self._in_slot(task), name=f"task {task.id}")
        return True

    async def _in_slot(self, task: Task) -> None:
        try:
            await self._attempt(task)
        except Exception:
            # As above: what went wrong with one task must not end the others.
            _log.exception("tasks.failed", task=str(task.id))
        finally:
            self._busy[task.queue] -= 1
            self._freed.set()

    async def _take(self, queues: list[Queue]) -> Task | None:
        async with self._database.transaction() as connection:
            return await task_runs.take(connection, queues, stale_seconds=self._stale)

    async def _attempt(self, task: Task) -> None:
        """Do the task once and write down how it went."""
        started = time.monotonic()
        outcome = "interrupted"
        try:
            await self._handled(task)
            outcome = "ended"
        except TaskLost as lost:
            outcome = "lost"
            _log.warning("task.lost", task=str(task.id), reason=str(lost))
        except asyncio.CancelledError:
            await self._give_back(task)
            raise
        except Exception as error:
            outcome = await self._unfinished(task, error)
        finally:
            if self._observer is not None:
                self._observer.task_attempted(task.queue.value, outcome, time.monotonic() - started)

    async def _handled(self, task: Task) -> None:
        """Run the handler with a beating heart. Raises what it raises, and TaskLost as soon as another has the task."""
        pause = min(self._beat, task.stale_seconds / _BEATS_PER_SILENCE)
        handling = asyncio.ensure_future(self._handlers[task.queue](task))
        try:
            while not (await asyncio.wait([handling], timeout=pause))[0]:
                try:
                    async with self._database.transaction() as connection:
                        await task_runs.beat(connection, task)
                except _DATABASE_AWAY as outage:
                    _log.warning("task.beat_missed", task=str(task.id), reason=str(outage))
            handling.result()
        finally:
            if not handling.done():
                handling.cancel()
                await asyncio.wait([handling], timeout=_GOODBYE_SECONDS)

    async def _unfinished(self, task: Task, error: Exception) -> str:
        """Write down that the attempt did not end well; what became of the task."""
        told = _told(error)
        given_up = False

        async def write(connection: Connection) -> None:
            nonlocal given_up
            if isinstance(error, TaskStopped):
                await task_runs.interrupt(connection, task, str(error), status=Status.CANCELLED)
            elif _is_outage(error):
                await task_runs.interrupt(connection, task, told)
            else:
                given_up = await task_runs.fail(connection, task, told)

        if not await self._written(task, write):
            return "lost"
        if isinstance(error, TaskStopped):
            _log.info("task.stopped", task=str(task.id), queue=task.queue.value, attempt=task.attempt)
            return "stopped"
        tell = _log.error if given_up else _log.warning
        tell(
            "task.failed",
            task=str(task.id),
            queue=task.queue.value,
            attempt=task.attempt,
            reason=told,
            **_surprise(error),
        )
        if _is_outage(error):
            return "interrupted"
        return "given_up" if given_up else "failed"

    async def _written(self, task: Task, write: Callable[[Connection], Awaitable[None]]) -> bool:
        """Write down how an attempt ended, also when the database is away for a while; False when it was too long, so
        that the task is another worker's.
        """
        pause, deadline = _FIRST_RETRY_SECONDS, time.monotonic() + task.stale_seconds
        while True:
            try:
                async with self._database.transaction() as connection:
                    await write(connection)
                return True
            except TaskLost as lost:
                _log.warning("task.lost", task=str(task.id), reason=str(lost))
                return False
            except _DATABASE_AWAY as outage:
                if time.monotonic() + pause > deadline:
                    _log.warning("task.lost", task=str(task.id), reason=str(outage))
                    return False
            await asyncio.sleep(pause)
            pause *= 2

    async def _give_back(self, task: Task) -> None:
        """Let another process begin the task at once, because this one ends."""
        try:
            async with asyncio.timeout(_GOODBYE_SECONDS), self._database.transaction() as connection:
                await task_runs.interrupt(connection, task, "its process was ended", in_seconds=0.0)
        except (*_DATABASE_AWAY, TaskLost, TimeoutError) as left:
            _log.info("task.left", task=str(task.id), reason=str(left))


def _told(error: Exception) -> str:
    """What whoever may see the task reads of it. Only the texts of CatalogErrors are made for clients; another may hold
    a statement with its values, so of those the type is told and an id under which the log has the rest.
    """
    name = type(error).__name__
    return f"{name}: {error}"[:1000] if isinstance(error, CatalogError) else f"{name} (error id {uuid4()})"


def _surprise(error: Exception) -> dict[str, object]:
    """What the log has beside what is told."""
    return {} if isinstance(error, CatalogError) else {"exc_info": error}


def _is_outage(error: Exception) -> bool:
    """Whether something was away that will be back: that is not counted as a try of the task."""
    if isinstance(error, CatalogError):
        return error.code in _AWAY_CODES
    return isinstance(error, (*_DATABASE_AWAY, DecisionEngineUnavailable))
