# SPDX-License-Identifier: Apache-2.0
"""Run tasks of each queue concurrently, renew their leases, retry failures, and stop on request.

A recurring task of each project deletes ended tasks and their attempt logs after a retention time.
"""

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
from gateway.access.door.door import Door
from gateway.access.nouns.project import ProjectRef
from gateway.access.operations.tasks import CleanTaskLog
from gateway.db.engine.database import Connection, Database
from gateway.db.tasks import task_queues, task_runs
from gateway.db.tasks.task_runs import STALE_SECONDS, Task, TaskLost, TaskStopped
from gateway.db.tasks.tasks import Queue, Status
from gateway.features.kit import admitted
from gateway.iceberg.errors import CatalogError

_BATCH: Final = 1000


class LogCleanup:
    """Handler of the task `task_log_cleanup`. The next run is scheduled in the transaction that finishes this run."""

    def __init__(self, *, database: Database, door: Door) -> None:
        self._database = database
        self._door = door

    async def __call__(self, task: Task) -> None:
        """Delete rows in batches, which keeps each transaction short."""
        operation = CleanTaskLog(ProjectRef(task.project_id))
        async with admitted(self._door, Queue.TASK_LOG_CLEANUP.value, str(task.id), operation) as permit:
            async with self._database.read() as connection:
                queue_settings = await task_queues.settings(
                    connection, Queue.TASK_LOG_CLEANUP, project_id=task.project_id
                )
            removed = 0
            while True:
                async with self._database.transaction() as connection:
                    batch = await task_queues.remove_ended(
                        connection, task.project_id, older_than=queue_settings.retention, limit=_BATCH
                    )
                removed += batch
                if batch < _BATCH:
                    break
                await report(self._database, task, progress=0.5, details={"removed": removed})
            permit.pending_audit.add_details(project_id=task.project_id, removed=str(removed))
            async with self._database.change(permit) as connection:
                await task_runs.report(connection, task, progress=1.0, details={"removed": removed})
                await task_runs.finish(connection, task)
                await task_queues.schedule_cleanups(connection, project_id=task.project_id)


_log = structlog.get_logger("tasks.worker")

Handler = Callable[[Task], Awaitable[None]]
"""Runs a task and finishes it in the transaction that records its result (`task_runs.finish`). A long task reports its
progress (`features/tasks/worker.py`), which also detects a request to stop.
"""

_DATABASE_OUTAGES: Final = (DatabaseUnavailable, CommitUnknown)
_OUTAGE_CODES: Final = (429, 503)
_BEATS_PER_SILENCE: Final = 4
_MAINTENANCE_SECONDS: Final = 30.0
_FIRST_RETRY_SECONDS: Final = 0.5
_SHUTDOWN_SECONDS: Final = 1.5


class TaskObserver(Protocol):
    """Receiver of results and numbers of tasks, for metrics."""

    def task_attempted(self, queue: str, outcome: str, seconds: float) -> None:
        """Record the end of an attempt: "ended", "failed", "given_up", "interrupted", "stopped" or "lost"."""
        ...

    def tasks_counted(self, counts: Mapping[tuple[str, str], int]) -> None:
        """Record the number of unfinished tasks, by (queue, status). Missing pairs are zero."""
        ...


class Worker:
    """The worker of one process. It runs at most `slots` tasks of each queue at a time (default 1). A queue with 0
    slots is not run.

    `every` is the mean pause when no task is due. `beat` is the longest interval of heartbeats. `stale` is the time
    without a heartbeat after which another worker takes over a task, unless the queue configures it. All are in
    seconds.
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
        self._running: Counter[Queue] = Counter()
        self._freed = asyncio.Event()
        self._maintained_at = -_MAINTENANCE_SECONDS

    async def run(self) -> None:
        """Run tasks until the process ends. Then its unfinished tasks become due for other processes."""
        async with asyncio.TaskGroup() as running:
            while True:
                self._freed.clear()
                if not await self._start_next(running):
                    # The end of a task also ends this pause, so that a task that waits for a free slot starts
                    # immediately.
                    pause = self._every * random.uniform(0.5, 1.5)  # noqa: S311 - jitter, not a secret
                    # `wait_for` in Python 3.11 loses a cancellation that arrives together with its result.
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await self._freed.wait()

    async def work_once(self) -> bool:
        """Take and run one task. Return False if none is due."""
        task = await self._take(list(self._handlers))
        if task is None:
            return False
        await self._attempt(task)
        return True

    async def maintain(self) -> None:
        """Schedule recurring tasks, and tasks whose worker died while it stopped them. Count unfinished tasks. Works at
        most every 30 seconds. Raises the errors of database outages.
        """
        if time.monotonic() - self._maintained_at < _MAINTENANCE_SECONDS:
            return
        async with self._database.transaction() as connection:
            await task_queues.schedule_cleanups(connection)
            await task_runs.release(connection, stale_seconds=self._stale)
            counts = await task_queues.count(connection)
        self._maintained_at = time.monotonic()
        if self._observer is not None:
            self._observer.tasks_counted(counts)

    async def _start_next(self, running: asyncio.TaskGroup) -> bool:
        """Start one task in a free slot of its queue. Return False if none is due or no slot is free."""
        try:
            await self.maintain()
            free = [queue for queue, slots in self._slots.items() if self._running[queue] < slots]
            task = await self._take(free) if free else None
        except _DATABASE_OUTAGES as outage:
            _log.warning("tasks.postponed", reason=str(outage))
            return False
        except Exception:
            # The worker must survive unexpected errors; they are logged with their traceback.
            _log.exception("tasks.failed")
            return False
        if task is None:
            return False
        self._running[task.queue] += 1
        running.create_task(self._in_slot(task), name=f"task {task.id}")
        return True

    async def _in_slot(self, task: Task) -> None:
        try:
            await self._attempt(task)
        except Exception:
            # An unexpected error of one task must not end the others.
            _log.exception("tasks.failed", task=str(task.id))
        finally:
            self._running[task.queue] -= 1
            self._freed.set()

    async def _take(self, queues: list[Queue]) -> Task | None:
        async with self._database.transaction() as connection:
            return await task_runs.take(connection, queues, stale_seconds=self._stale)

    async def _attempt(self, task: Task) -> None:
        """Run the task once and record the outcome."""
        started = time.monotonic()
        outcome = "interrupted"
        try:
            await self._run_handler(task)
            outcome = "ended"
        except TaskLost as lost:
            outcome = "lost"
            _log.warning("task.lost", task=str(task.id), reason=str(lost))
        except asyncio.CancelledError:
            await self._return_task(task)
            raise
        except Exception as error:
            outcome = await self._record_failure(task, error)
        finally:
            if self._observer is not None:
                self._observer.task_attempted(task.queue.value, outcome, time.monotonic() - started)

    async def _run_handler(self, task: Task) -> None:
        """Run the handler and send heartbeats. Raises the handler's errors, and TaskLost if another worker has taken
        the task.
        """
        pause = min(self._beat, task.stale_seconds / _BEATS_PER_SILENCE)
        handling = asyncio.ensure_future(self._handlers[task.queue](task))
        try:
            while not (await asyncio.wait([handling], timeout=pause))[0]:
                try:
                    async with self._database.transaction() as connection:
                        await task_runs.beat(connection, task)
                except _DATABASE_OUTAGES as outage:
                    _log.warning("task.beat_missed", task=str(task.id), reason=str(outage))
            handling.result()
        finally:
            if not handling.done():
                handling.cancel()
                await asyncio.wait([handling], timeout=_SHUTDOWN_SECONDS)

    async def _record_failure(self, task: Task, error: Exception) -> str:
        """Record a failed attempt. Return its outcome, one of the texts of `TaskObserver.task_attempted`."""
        public_text = _public_text(error)
        given_up = False

        async def write(connection: Connection) -> None:
            nonlocal given_up
            if isinstance(error, TaskStopped):
                await task_runs.interrupt(connection, task, str(error), status=Status.CANCELLED)
            elif _is_outage(error):
                await task_runs.interrupt(connection, task, public_text)
            else:
                given_up = await task_runs.fail(connection, task, public_text)

        if not await self._record(task, write):
            return "lost"
        if isinstance(error, TaskStopped):
            _log.info("task.stopped", task=str(task.id), queue=task.queue.value, attempt=task.attempt)
            return "stopped"
        log = _log.error if given_up else _log.warning
        log(
            "task.failed",
            task=str(task.id),
            queue=task.queue.value,
            attempt=task.attempt,
            reason=public_text,
            **_traceback_field(error),
        )
        if _is_outage(error):
            return "interrupted"
        return "given_up" if given_up else "failed"

    async def _record(self, task: Task, write: Callable[[Connection], Awaitable[None]]) -> bool:
        """Record the end of an attempt. Retry during a database outage. Return False if another worker has taken the
        task, or may have taken it because the outage lasted too long.
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
            except _DATABASE_OUTAGES as outage:
                if time.monotonic() + pause > deadline:
                    _log.warning("task.lost", task=str(task.id), reason=str(outage))
                    return False
            await asyncio.sleep(pause)
            pause *= 2

    async def _return_task(self, task: Task) -> None:
        """Make the task due for other processes immediately, because this one ends."""
        try:
            async with asyncio.timeout(_SHUTDOWN_SECONDS), self._database.transaction() as connection:
                await task_runs.interrupt(connection, task, "its worker process was stopped", in_seconds=0.0)
        except (*_DATABASE_OUTAGES, TaskLost, TimeoutError) as left:
            _log.info("task.left", task=str(task.id), reason=str(left))


def _public_text(error: Exception) -> str:
    """Return the text of an error for users who can see the task. Only texts of CatalogErrors are written for clients.
    Other texts may contain SQL with values, so only their type is returned, with an error id for the log.
    """
    name = type(error).__name__
    return f"{name}: {error}"[:1000] if isinstance(error, CatalogError) else f"{name} (error id {uuid4()})"


def _traceback_field(error: Exception) -> dict[str, object]:
    """Return the traceback of an unexpected error as an additional log field, or no field for other errors."""
    return {} if isinstance(error, CatalogError) else {"exc_info": error}


def _is_outage(error: Exception) -> bool:
    """Return True if a dependency is temporarily unavailable. Such a failure does not count as an attempt of the
    task.
    """
    if isinstance(error, CatalogError):
        return error.code in _OUTAGE_CODES
    return isinstance(error, (*_DATABASE_OUTAGES, DecisionEngineUnavailable))


async def report(
    database: Database, task: Task, *, progress: float, details: Mapping[str, object] | None = None
) -> None:
    """Record `progress` (0 to 1) and `details` of a task. Handlers call it where the task can be interrupted.

    Raises TaskStopped if a stop was requested, TaskLost if another worker has taken the task, and the errors of
    database outages.
    """
    async with database.transaction() as connection:
        stop = await task_runs.report(connection, task, progress=progress, details=details)
    if stop:
        raise TaskStopped("stopped by request")
