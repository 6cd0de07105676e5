# SPDX-License-Identifier: Apache-2.0
"""Statements on attempts: one run of a task, from when a worker takes it until it is over.

What ends an attempt is written together with its row in `task_log`, and only by the worker that has it: whoever was
slow finds that the task was taken over (TaskLost) and leaves no trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Float, and_, case, cast, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.rows import AnyRow
from gateway.db.schema.tasks import ACTIVE_TASKS, task_queue_configs, tasks
from gateway.db.tasks import BEGUN, Queue, Status, interval, log_attempt, over

MAX_ATTEMPTS: Final = 5
"""How often a task is begun that fails each time."""

STALE_SECONDS: Final = 120
"""The silence after which a task is taken over where nothing else is configured."""

FIRST_PAUSE_SECONDS: Final = 10.0
_LONGEST_PAUSE_SECONDS: Final = 900.0
_DIED: Final = "its worker died"


class TaskLost(Exception):
    """Another worker took the task over; what this one did must not be written down as its end."""


class TaskStopped(Exception):
    """Somebody asked the worker to stop. What was done so far stays done; the task is begun again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run of a task: whoever takes it over has the next `attempt`, and this one can end it no more.

    It is about one thing of a warehouse, or about a project. `stale_seconds` is the silence after which others take it
    over; `tries` counts the attempts that count, this one included.
    """

    id: UUID
    queue: Queue
    of_warehouse: UUID | None
    of_entity: UUID | None
    of_project: str | None
    attempt: int
    tries: int
    stale_seconds: float
    payload: Mapping[str, str]

    @property
    def warehouse_id(self) -> UUID:
        """Raises ValueError for a project's task."""
        return _given(self.of_warehouse, self)

    @property
    def entity_id(self) -> UUID:
        """Raises ValueError for a project's task."""
        return _given(self.of_entity, self)

    @property
    def project_id(self) -> str:
        """Raises ValueError for a task of a warehouse."""
        return _given(self.of_project, self)


async def take(connection: AsyncConnection, queues: Sequence[Queue], *, stale_seconds: float) -> Task | None:
    """Begin the task that is due longest, or that its worker left without a heartbeat; None when there is none.

    A task that was left is begun again, unless it was tried often enough. `stale_seconds` holds where no other silence
    is configured for the queue.
    """
    stale = _stale_seconds(stale_seconds)
    chosen = (
        select(tasks, stale.label("stale_seconds"))
        .where(
            # What is due later is not even looked at, however much of it there is (`tasks_due_idx`).
            ACTIVE_TASKS,
            tasks.c.scheduled_for <= func.now(),
            tasks.c.queue.in_([queue.value for queue in queues]),
            or_(tasks.c.status == Status.SCHEDULED, _left(stale)),
        )
        .order_by(tasks.c.scheduled_for)
        .limit(1)
        .with_for_update(skip_locked=True, of=tasks)
    )
    while (row := (await connection.execute(chosen)).one_or_none()) is not None:
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
    """Schedule tasks again whose worker was asked to stop and left them without a heartbeat, for the time that was set
    then; how many. `take` does not find them before.
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
    """Say that the worker lives; whether it was asked to stop. Raises TaskLost."""
    return await _mine(connection, task, heartbeat_at=func.clock_timestamp()) == Status.STOPPING


async def report(
    connection: AsyncConnection, task: Task, *, progress: float, details: Mapping[str, object] | None = None
) -> bool:
    """As `beat`, telling how far it is, from 0 to 1, and what is worth knowing of this attempt. Raises TaskLost."""
    values: dict[str, object] = {} if details is None else {"execution_details": dict(details)}
    now = func.clock_timestamp()
    status = await _mine(
        connection, task, heartbeat_at=now, updated_at=now, progress=min(max(progress, 0.0), 1.0), **values
    )
    return status == Status.STOPPING


async def finish(
    connection: AsyncConnection, task: Task, *, status: Status = Status.SUCCEEDED, reason: str = ""
) -> None:
    """End the task in the transaction that records what it did. Raises TaskLost."""
    if status is Status.SUCCEEDED:
        await _mine(connection, task, progress=1.0)
    await log_attempt(connection, task.id, status, reason or None, attempt=task.attempt)
    await _mine(connection, task, **over(status), last_error=reason or None)


async def fail(connection: AsyncConnection, task: Task, error: str) -> bool:
    """Try again later, each time after twice as long, or give up after the last attempt; True when given up.

    Raises TaskLost.
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
    """Try again later, without counting this attempt: what ended it was nothing the task did. Raises TaskLost.

    Later is after `in_seconds`, or after a time that grows with the attempts. `status` is that of the attempt.
    """
    await log_attempt(connection, task.id, status, error, attempt=task.attempt)
    seconds = _pause(task.attempt) if in_seconds is None else in_seconds
    await _again(connection, task, error, seconds=seconds, interruptions=1)


async def _again(connection: AsyncConnection, task: Task, error: str, *, seconds: float, interruptions: int) -> None:
    """Schedule it anew: after so long, or when it was asked to stop, at the time that was set then."""
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
    """Change the task while this worker has it; its status then. Raises TaskLost."""
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
    """Whether a worker has the task and is silent for so long."""
    return and_(tasks.c.status.in_(BEGUN), tasks.c.heartbeat_at < func.clock_timestamp() - interval(stale))


def _stale_seconds(default: float) -> ColumnElement[float]:
    """What is configured for the queue in the warehouse or project of the task, else the default."""
    configured = select(task_queue_configs.c.heartbeat_seconds).where(
        task_queue_configs.c.queue == tasks.c.queue,
        or_(
            task_queue_configs.c.warehouse_id == tasks.c.warehouse_id,
            task_queue_configs.c.project_id == tasks.c.project_id,
        ),
    )
    return func.coalesce(cast(configured.scalar_subquery(), Float), default)


def _task(row: AnyRow) -> Task:
    """The next run of the task in this row, which is as it was before."""
    return Task(
        id=row.id,
        queue=Queue(row.queue),
        of_warehouse=row.warehouse_id,
        of_entity=row.entity_id,
        of_project=row.project_id,
        attempt=row.attempt + 1,
        tries=row.attempt + 1 - row.interruptions,
        stale_seconds=row.stale_seconds,
        payload=row.payload,
    )


_T = TypeVar("_T")


def _given(value: _T | None, task: Task) -> _T:
    if value is None:
        raise ValueError(f"task {task.id} of the queue {task.queue} is about something else")
    return value
