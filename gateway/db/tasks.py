# SPDX-License-Identifier: Apache-2.0
"""Statements on tasks: work for later that any process may take, one at a time, and take over when its worker dies.

An attempt is one run of a task. What ends it is written together with its row in `task_log`, and only by the worker
that has it: whoever was slow finds that the task was taken over (TaskLost) and leaves no trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Float,
    Function,
    Text,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.rows import AnyRow
from gateway.db.schema.namespaces import namespaces
from gateway.db.schema.tables import tables
from gateway.db.schema.tasks import ACTIVE_TASKS, task_log, task_queue_configs, tasks

MAX_ATTEMPTS: Final = 5
"""How often a task is begun that fails each time (`lakekeeper.md` section 9)."""

STALE_SECONDS: Final = 120
"""The silence after which a task is taken over where nothing else is configured (`lakekeeper.md` section 9)."""

FIRST_PAUSE_SECONDS: Final = 10.0
_LONGEST_PAUSE_SECONDS: Final = 900.0
_DIED: Final = "its worker died"


class Queue(StrEnum):
    """The kinds of tasks. The first three have the names of the reference system (`lakekeeper.md` 3.9)."""

    SOFT_DELETION = "soft_deletion"
    """A table or view that was dropped goes for good when its time is over."""
    TABULAR_PURGE = "tabular_purge"
    """The files of a table or view that is gone are deleted."""
    TASK_LOG_CLEANUP = "task_log_cleanup"
    """Ended tasks of a project and its warehouses are forgotten; a project's own."""
    EXPIRE_STAGED_TABLE = "expire_staged_table"
    """A table that was staged and never made is forgotten."""


class Status(StrEnum):
    """How a task is."""

    SCHEDULED = "scheduled"
    RUNNING = "running"
    STOPPING = "stopping"
    """Its worker was asked to stop and has not yet."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE: Final = (Status.SCHEDULED.value, Status.RUNNING.value, Status.STOPPING.value)
BEGUN: Final = (Status.RUNNING.value, Status.STOPPING.value)


class TaskLost(Exception):
    """Another worker took the task over; what this one did must not be written down as its end."""


class TaskStopped(Exception):
    """Somebody asked the worker to stop. What was done so far stays done; the task is begun again later."""


class Cancellation(StrEnum):
    """What became of the active task of an entity that was to be cancelled."""

    NONE = "none"
    """There was none."""
    CANCELLED = "cancelled"
    """It had not been begun and never will be."""
    RUNNING = "running"
    """A worker has it, so it goes on."""


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


async def add(
    connection: AsyncConnection,
    queue: Queue,
    *,
    warehouse_id: UUID,
    entity_id: UUID,
    payload: Mapping[str, str],
    entity_type: str = "table",
    entity_name: Sequence[str] = (),
    in_seconds: float = 0.0,
    at: datetime | None = None,
    parent: UUID | None = None,
) -> UUID | None:
    """Schedule a task in the transaction of what makes it necessary; its id, None when one is active for the entity,
    which is enough.

    It is due `at` that time, or `in_seconds` from now. `entity_name` is the path of the entity, for people; when it is
    not given it is that of the row, or of the parent's entity when the row is gone.
    """
    statement = (
        insert(tasks)
        .values(
            id=uuid7(),
            queue=queue.value,
            warehouse_id=warehouse_id,
            entity_type=entity_type,
            entity_id=entity_id,
            entity_name=list(entity_name) if entity_name else _known_name(entity_id, parent),
            parent_task_id=parent,
            payload=dict(payload),
            scheduled_for=func.clock_timestamp() + _seconds(in_seconds) if at is None else at,
        )
        .on_conflict_do_nothing()
        .returning(tasks.c.id)
    )
    added: UUID | None = (await connection.execute(statement)).scalar_one_or_none()
    return added


async def cancel(
    connection: AsyncConnection, queue: Queue, entity_id: UUID, *, reason: str, even_running: bool = False
) -> Cancellation:
    """Cancel the entity's active task of this queue unless a worker has it, in the transaction that makes it needless.

    Until that transaction ends no worker can take it. `even_running` takes it away from a worker too, who then finds
    that it came too late (TaskLost) and changes nothing.
    """
    return (await cancel_all(connection, queue, [entity_id], reason=reason, even_running=even_running))[entity_id]


async def cancel_all(
    connection: AsyncConnection,
    queue: Queue,
    entity_ids: Sequence[UUID],
    *,
    reason: str,
    even_running: bool = False,
) -> dict[UUID, Cancellation]:
    """As `cancel`, for many entities; each is in the answer."""
    found = (
        select(tasks.c.id, tasks.c.entity_id, tasks.c.status)
        .where(tasks.c.queue == queue.value, tasks.c.entity_id.in_(entity_ids), tasks.c.status.in_(ACTIVE))
        .order_by(tasks.c.id)
        .with_for_update()
    )
    rows = (await connection.execute(found)).all()
    cancelled = [row for row in rows if even_running or row.status == Status.SCHEDULED]
    for row in cancelled:
        await _log_attempt(connection, row.id, Status.CANCELLED, reason)
    await connection.execute(
        update(tasks)
        .where(tasks.c.id.in_([row.id for row in cancelled]))
        .values(**_over(Status.CANCELLED), last_error=reason)
    )
    outcome = dict.fromkeys(entity_ids, Cancellation.NONE)
    outcome.update((row.entity_id, Cancellation.RUNNING) for row in rows)
    outcome.update((row.entity_id, Cancellation.CANCELLED) for row in cancelled)
    return outcome


async def delay(connection: AsyncConnection, queues: Sequence[Queue], *, seconds: float) -> int:
    """Let no task of these queues be begun, or taken over, for so long; how many wait longer for it."""
    until = func.clock_timestamp() + _seconds(seconds)
    sooner = update(tasks).where(
        ACTIVE_TASKS, tasks.c.queue.in_([queue.value for queue in queues]), tasks.c.scheduled_for < until
    )
    return (await connection.execute(sooner.values(scheduled_for=until))).rowcount


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
            await _log_attempt(connection, row.id, Status.FAILED, _DIED)
        if row.status in BEGUN and row.attempt - row.interruptions >= MAX_ATTEMPTS:
            await _set(connection, row.id, **_over(Status.FAILED), last_error=_DIED)
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
        await _log_attempt(connection, id, Status.FAILED, _DIED)
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
    await _log_attempt(connection, task.id, status, reason or None, attempt=task.attempt)
    await _mine(connection, task, **_over(status), last_error=reason or None)


async def fail(connection: AsyncConnection, task: Task, error: str) -> bool:
    """Try again later, each time after twice as long, or give up after the last attempt; True when given up.

    Raises TaskLost.
    """
    await _log_attempt(connection, task.id, Status.FAILED, error, attempt=task.attempt)
    if task.tries >= MAX_ATTEMPTS:
        await _mine(connection, task, **_over(Status.FAILED), last_error=error)
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
    await _log_attempt(connection, task.id, status, error, attempt=task.attempt)
    seconds = _pause(task.attempt) if in_seconds is None else in_seconds
    await _again(connection, task, error, seconds=seconds, interruptions=1)


async def _again(connection: AsyncConnection, task: Task, error: str, *, seconds: float, interruptions: int) -> None:
    """Schedule it anew: after so long, or when it was asked to stop, at the time that was set then."""
    later = case(
        (tasks.c.status == Status.STOPPING, tasks.c.scheduled_for), else_=func.clock_timestamp() + _seconds(seconds)
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


def _over(status: Status) -> dict[str, object]:
    now = func.clock_timestamp()
    return {"status": status.value, "finished_at": now, "updated_at": now}


async def _set(connection: AsyncConnection, id: UUID, **values: object) -> None:
    await connection.execute(update(tasks).where(tasks.c.id == id).values(**values))


async def _log_attempt(
    connection: AsyncConnection, id: UUID, status: Status, message: str | None, *, attempt: int | None = None
) -> None:
    """Write down how the attempt ended that the row is in; nothing when that is another one than `attempt`."""
    columns = ("attempt", "scheduled_for", "picked_up_at", "progress", "execution_details")
    ended = select(
        tasks.c.id, *(tasks.c[name] for name in columns), literal(status.value), literal(message, Text)
    ).where(tasks.c.id == id, tasks.c.status.in_(BEGUN))
    if attempt is not None:
        ended = ended.where(tasks.c.attempt == attempt)
    names = ["task_id", "attempt", "scheduled_for", "started_at", "progress", "execution_details", "status", "message"]
    await connection.execute(insert(task_log).from_select(names, ended).on_conflict_do_nothing())


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


def _known_name(entity_id: UUID, parent: UUID | None) -> ColumnElement[Sequence[str]]:
    """The path of a table or view as its row says, or as the parent task does."""
    of_row = (
        select(func.array_append(namespaces.c.levels, tables.c.name))
        .join_from(tables, namespaces, namespaces.c.id == tables.c.namespace_id)
        .where(tables.c.id == entity_id)
    )
    of_parent = select(tasks.c.entity_name).where(tasks.c.id == parent)
    nameless = cast([], ARRAY(Text))
    return func.coalesce(of_row.scalar_subquery(), of_parent.scalar_subquery(), nameless)


def _left(stale: ColumnElement[float]) -> ColumnElement[bool]:
    """Whether a worker has the task and is silent for so long."""
    return and_(tasks.c.status.in_(BEGUN), tasks.c.heartbeat_at < func.clock_timestamp() - _seconds(stale))


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


def _seconds(seconds: float | ColumnElement[float]) -> Function[timedelta]:
    return func.make_interval(0, 0, 0, 0, 0, 0, seconds)
