# SPDX-License-Identifier: Apache-2.0
"""The worker: takes one task after the other, keeps its heart beating, and tries again later what failed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import structlog

from gateway.access.outage import CommitUnknown, DatabaseUnavailable
from gateway.db import tasks
from gateway.db.engine import Database
from gateway.db.tasks import Queue, Task, TaskLost

_log = structlog.get_logger("tasks.worker")

Handler = Callable[[Task], Awaitable[None]]
"""Does a task and ends it in the transaction that records it (`tasks.finish`)."""


class Worker:
    """One process's worker. `beat` is the time between heartbeats, `stale` the silence (seconds) after which others
    take a task over; `every` the mean pause when there is nothing to do.
    """

    def __init__(
        self,
        database: Database,
        handlers: Mapping[Queue, Handler],
        *,
        every: float = 2.0,
        beat: float = 20.0,
        stale: float = 120.0,
    ) -> None:
        self._database = database
        self._handlers = handlers
        self._every = every
        self._beat = beat
        self._stale = stale

    async def run(self) -> None:
        """Work for as long as the process lives."""
        while True:
            try:
                while await self.work_once():
                    pass
            except (DatabaseUnavailable, CommitUnknown) as outage:
                _log.warning("tasks.postponed", reason=str(outage))
            except Exception:
                # The worker must outlive every surprise; the surprise itself is told in full.
                _log.exception("tasks.failed")
            await asyncio.sleep(self._every * random.uniform(0.5, 1.5))  # noqa: S311 - spreads load, protects nothing

    async def work_once(self) -> bool:
        """Take and do one task; False when none is due."""
        async with self._database.transaction() as connection:
            task = await tasks.take(connection, list(self._handlers), stale_seconds=self._stale)
        if task is None:
            return False
        try:
            async with self._beating(task):
                await self._handlers[task.queue](task)
        except TaskLost as lost:
            _log.warning("task.lost", task=str(task.id), reason=str(lost))
        except Exception as error:
            await self._failed(task, error)
        return True

    async def _failed(self, task: Task, error: Exception) -> None:
        told = f"{type(error).__name__}: {error}"[:1000]
        async with self._database.transaction() as connection:
            given_up = await tasks.fail(connection, task, told)
        tell = _log.error if given_up else _log.warning
        tell("task.failed", task=str(task.id), queue=task.queue.value, attempt=task.attempt, reason=told)

    @asynccontextmanager
    async def _beating(self, task: Task) -> AsyncIterator[None]:
        async def beat() -> None:
            while True:
                await asyncio.sleep(self._beat)
                try:
                    async with self._database.transaction() as connection:
                        await tasks.beat(connection, task)
                except (DatabaseUnavailable, CommitUnknown):
                    continue
                except TaskLost:
                    return

        beating = asyncio.create_task(beat(), name=f"heartbeat of {task.id}")
        try:
            yield
        finally:
            beating.cancel()
