# SPDX-License-Identifier: Apache-2.0
"""Statements on the attempts of tasks. An attempt is one run of a task, from its start by a worker to its end.

The worker that runs an attempt writes its end together with a row in `task_log`. If another worker has taken over the
task of a slow worker, the slow one gets TaskLost and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

import msgspec
from sqlalchemy import ColumnElement, Float, and_, case, cast, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.rows import fetch_optional
from gateway.db.schema.tasks import ACTIVE_TASKS, task_queue_configs, tasks
from gateway.db.tasks.tasks import BEGUN, Payload, Queue, Status, interval, log_attempt, over

_P = TypeVar("_P", bound=Payload)

MAX_ATTEMPTS: Final = 5
"""Limit of the failing attempts of a task."""

STALE_SECONDS: Final = 120
"""Default time without a heartbeat after which another worker takes a task over."""

FIRST_PAUSE_SECONDS: Final = 10.0
_LONGEST_PAUSE_SECONDS: Final = 900.0
_DIED: Final = "its worker process died"


class TaskLost(Exception):
    """Another worker took over the task, so this worker must not record the end of the task."""


class TaskStopped(Exception):
    """The worker received a request to stop. The work done so far is kept, and the task is started again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run of a task. A worker that takes over the task has the next number `attempt`; this run then cannot end the
    task.

    The task concerns one entity of a warehouse, or a project. `stale_seconds` is the time without a heartbeat after
    which another worker takes over. `tries` is the number of counted attempts, including this one.
    """

    id: UUID
    queue: Queue
    of_warehouse: UUID | None
    of_entity: UUID | None
    of_project: str | None
    attempt: int
    tries: int
    stale_seconds: float
    stored_payload: object

    def payload(self, kind: type[_P]) -> _P:
        """Return the payload, whose type is that of the queue. Raises msgspec.ValidationError for another type."""
        return msgspec.convert(self.stored_payload, kind)

    @property
    def warehouse_id(self) -> UUID:
        """The id of the task's warehouse. Raises ValueError for a task of a project."""
        return _given(self.of_warehouse, self)

    @property
    def entity_id(self) -> UUID:
        """The id of the task's entity. Raises ValueError for a task of a project."""
        return _given(self.of_entity, self)

    @property
    def project_id(self) -> str:
        """The id of the task's project. Raises ValueError for a task of a warehouse."""
        return _given(self.of_project, self)


class _Due(NamedTuple):
    """A task before a worker starts it."""

    id: UUID
    queue: str
    warehouse_id: UUID | None
    entity_id: UUID | None
    project_id: str | None
    status: str
    attempt: int
    interruptions: int
    payload: object
    stale_seconds: float


async def take(connection: AsyncConnection, queues: Sequence[Queue], *, stale_seconds: float) -> Task | None:
    """Start the task that has been due longest, or a task whose worker sends no heartbeats. Return None if there is
    none.

    A task without heartbeats is started again, unless it has used its last attempt. `stale_seconds` is the default for
    queues without a configured time.
    """
    stale = _stale_seconds(stale_seconds)
    chosen = (
        select(*(tasks.c[name] for name in _Due._fields[:-1]), stale.label("stale_seconds"))
        .where(
            # Tasks that are due later are not read, however many there are (`tasks_due_idx`).
            ACTIVE_TASKS,
            tasks.c.scheduled_for <= func.now(),
            tasks.c.queue.in_([queue.value for queue in queues]),
            or_(tasks.c.status == Status.SCHEDULED, _left(stale)),
        )
        .order_by(tasks.c.scheduled_for)
        .limit(1)
        .with_for_update(skip_locked=True, of=tasks)
    )
    while (row := await fetch_optional(connection, _Due, chosen)) is not None:
        if row.status in BEGUN:
            await log_attempt(connection, row.id, Status.FAILED, _DIED)
        if row.status in BEGUN and row.attempt - row.interruptions >= MAX_ATTEMPTS:
            await _set(connection, row.id, **over(Status.FAILED), last_error=_DIED)
            continue
        now = func.clock_timestamp()
        await _set(
            connection,
            row.id,
            status=Status.RUNNING.value,
            attempt=row.attempt + 1,
            picked_up_at=now,
            heartbeat_at=now,
            updated_at=now,
            progress=0.0,
            execution_details=None,
            last_error=None,
        )
        return _task(row)
    return None


async def release(connection: AsyncConnection, *, stale_seconds: float) -> int:
    """Schedule again each task whose worker was requested to stop and sends no heartbeats. Return the number of tasks.

    They start at the time that the request set. `take` does not start them before.
    """
    left = (
        select(tasks.c.id)
        .where(ACTIVE_TASKS, tasks.c.status == Status.STOPPING, _left(_stale_seconds(stale_seconds)))
        .with_for_update(skip_locked=True, of=tasks)
    )
    ids = (await connection.execute(left)).scalars().all()
    for id in ids:
        await log_attempt(connection, id, Status.FAILED, _DIED)
        await _set(connection, id, status=Status.SCHEDULED.value, last_error=_DIED)
    return len(ids)


async def beat(connection: AsyncConnection, task: Task) -> bool:
    """Record a heartbeat. Return True if the worker is requested to stop the task. Raises TaskLost."""
    return await _mine(connection, task, heartbeat_at=func.clock_timestamp()) == Status.STOPPING


async def report(
    connection: AsyncConnection, task: Task, *, progress: float, details: Mapping[str, object] | None = None
) -> bool:
    """Record a heartbeat, the progress from 0 to 1, and details of this attempt.

    Return True if the worker is requested to stop. Raises TaskLost.
    """
    values: dict[str, object] = {} if details is None else {"execution_details": dict(details)}
    now = func.clock_timestamp()
    status = await _mine(
        connection, task, heartbeat_at=now, updated_at=now, progress=min(max(progress, 0.0), 1.0), **values
    )
    return status == Status.STOPPING


async def finish(
    connection: AsyncConnection, task: Task, *, status: Status = Status.SUCCEEDED, reason: str = ""
) -> None:
    """End the task, in the transaction that records its result. Raises TaskLost."""
    if status is Status.SUCCEEDED:
        await _mine(connection, task, progress=1.0)
    await log_attempt(connection, task.id, status, reason or None, attempt=task.attempt)
    await _mine(connection, task, **over(status), last_error=reason or None)


async def fail(connection: AsyncConnection, task: Task, error: str) -> bool:
    """Schedule the next attempt, with a delay that doubles each time. After the last attempt, end the task.

    Return True if the task ended. Raises TaskLost.
    """
    await log_attempt(connection, task.id, Status.FAILED, error, attempt=task.attempt)
    if task.tries >= MAX_ATTEMPTS:
        await _mine(connection, task, **over(Status.FAILED), last_error=error)
        return True
    await _again(connection, task, error, seconds=_pause(task.tries), interruptions=0)
    return False


async def interrupt(
    connection: AsyncConnection,
    task: Task,
    error: str,
    *,
    in_seconds: float | None = None,
    status: Status = Status.FAILED,
) -> None:
    """Schedule another attempt without counting this one, because the task did not cause the end of the attempt. Raises
    TaskLost.

    The delay is `in_seconds`, or grows with the attempts. `status` is the status of the attempt.
    """
    await log_attempt(connection, task.id, status, error, attempt=task.attempt)
    seconds = _pause(task.attempt) if in_seconds is None else in_seconds
    await _again(connection, task, error, seconds=seconds, interruptions=1)


async def _again(connection: AsyncConnection, task: Task, error: str, *, seconds: float, interruptions: int) -> None:
    """Schedule the task after `seconds`. If it was requested to stop, use the start that the request set."""
    later = case(
        (tasks.c.status == Status.STOPPING, tasks.c.scheduled_for), else_=func.clock_timestamp() + interval(seconds)
    )
    await _mine(
        connection,
        task,
        status=Status.SCHEDULED.value,
        scheduled_for=later,
        updated_at=func.clock_timestamp(),
        interruptions=tasks.c.interruptions + interruptions,
        last_error=error,
    )


def _pause(attempt: int) -> float:
    return float(min(FIRST_PAUSE_SECONDS * 2 ** min(attempt - 1, 10), _LONGEST_PAUSE_SECONDS))


async def _set(connection: AsyncConnection, id: UUID, **values: object) -> None:
    await connection.execute(update(tasks).where(tasks.c.id == id).values(**values))


async def _mine(connection: AsyncConnection, task: Task, **values: object) -> str:
    """Change the task if this worker still runs it, and return its status. Raises TaskLost."""
    result = await connection.execute(
        update(tasks)
        .where(tasks.c.id == task.id, tasks.c.status.in_(BEGUN), tasks.c.attempt == task.attempt)
        .values(**values)
        .returning(tasks.c.status)
    )
    status: str | None = result.scalar_one_or_none()
    if status is None:
        raise TaskLost(f"task {task.id} was taken over or ended")
    return status


def _left(stale: ColumnElement[float]) -> ColumnElement[bool]:
    """Return the condition that a worker runs the task but has sent no heartbeat for this time."""
    return and_(tasks.c.status.in_(BEGUN), tasks.c.heartbeat_at < func.clock_timestamp() - interval(stale))


def _stale_seconds(default: float) -> ColumnElement[float]:
    """Return the time that is configured for the queue in the task's warehouse or project, or else the default."""
    configured = select(task_queue_configs.c.heartbeat_seconds).where(
        task_queue_configs.c.queue == tasks.c.queue,
        or_(
            task_queue_configs.c.warehouse_id == tasks.c.warehouse_id,
            task_queue_configs.c.project_id == tasks.c.project_id,
        ),
    )
    return func.coalesce(cast(configured.scalar_subquery(), Float), default)


def _task(row: _Due) -> Task:
    """Return the next run of the task, from its row before the start."""
    return Task(
        id=row.id,
        queue=Queue(row.queue),
        of_warehouse=row.warehouse_id,
        of_entity=row.entity_id,
        of_project=row.project_id,
        attempt=row.attempt + 1,
        tries=row.attempt + 1 - row.interruptions,
        stale_seconds=row.stale_seconds,
        stored_payload=row.payload,
    )


_T = TypeVar("_T")


def _given(value: _T | None, task: Task) -> _T:
    if value is None:
        raise ValueError(
            f"task {task.id} of the queue {task.queue} does not have the requested warehouse, object or project"
        )
    return value
