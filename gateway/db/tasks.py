# SPDX-License-Identifier: Apache-2.0
"""Statements on tasks: work for later that any process may take, one at a time, and take over when its worker dies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from sqlalchemy import and_, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.rows import AnyRow
from gateway.db.schema import tasks

MAX_ATTEMPTS = 5


class Queue(StrEnum):
    """The kinds of tasks; one worker runs them all."""

    PURGE_TABLE = "purge_table"
    EXPIRE_STAGED_TABLE = "expire_staged_table"


class TaskLost(Exception):
    """Another worker took the task over; what this one did must not be written down as its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run of a task: whoever takes it over has the next `attempt`, and this one can end it no more."""

    id: UUID
    queue: Queue
    warehouse_id: UUID
    entity_id: UUID
    attempt: int
    payload: Mapping[str, str]


async def add(
    connection: AsyncConnection,
    queue: Queue,
    *,
    warehouse_id: UUID,
    entity_id: UUID,
    payload: Mapping[str, str],
    entity_type: str = "table",
    in_seconds: float = 0.0,
) -> None:
    """Schedule a task in the transaction of what makes it necessary; one that is active for the entity is enough."""
    await connection.execute(
        insert(tasks)
        .values(
            id=uuid7(),
            queue=queue.value,
            warehouse_id=warehouse_id,
            entity_type=entity_type,
            entity_id=entity_id,
            payload=dict(payload),
            scheduled_for=func.clock_timestamp() + _seconds(in_seconds),
        )
        .on_conflict_do_nothing()
    )


async def take(connection: AsyncConnection, queues: Sequence[Queue], *, stale_seconds: float) -> Task | None:
    """Begin the task that is due longest, or that its worker left without a heartbeat; None when there is none."""
    due = and_(tasks.c.status == "scheduled", tasks.c.scheduled_for <= func.clock_timestamp())
    left = and_(tasks.c.status == "running", tasks.c.heartbeat_at < func.clock_timestamp() - _seconds(stale_seconds))
    await connection.execute(
        update(tasks)
        .where(left, tasks.c.attempt >= MAX_ATTEMPTS)
        .values(status="failed", finished_at=func.clock_timestamp(), last_error="its workers died")
    )
    chosen = (
        select(tasks.c.id)
        .where(tasks.c.queue.in_([queue.value for queue in queues]), or_(due, left))
        .order_by(tasks.c.scheduled_for)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    taken = (
        update(tasks)
        .where(tasks.c.id == chosen.scalar_subquery())
        .values(status="running", attempt=tasks.c.attempt + 1, heartbeat_at=func.clock_timestamp())
        .returning(tasks)
    )
    row = (await connection.execute(taken)).one_or_none()
    return None if row is None else _task(row)


async def beat(connection: AsyncConnection, task: Task) -> None:
    """Say that the worker lives. Raises TaskLost."""
    await _mine(connection, task, heartbeat_at=func.clock_timestamp())


async def finish(connection: AsyncConnection, task: Task, *, status: str = "succeeded", reason: str = "") -> None:
    """End the task in the transaction that records what it did. Raises TaskLost."""
    await _mine(connection, task, status=status, finished_at=func.clock_timestamp(), last_error=reason or None)


async def fail(connection: AsyncConnection, task: Task, error: str) -> bool:
    """Try again later, each time after twice as long, or give up after the last attempt; True when given up.

    Raises TaskLost.
    """
    if task.attempt >= MAX_ATTEMPTS:
        await finish(connection, task, status="failed", reason=error)
        return True
    later = func.clock_timestamp() + _seconds(5.0 * 2**task.attempt)
    await _mine(connection, task, status="scheduled", scheduled_for=later, last_error=error)
    return False


async def sweep(connection: AsyncConnection, *, older_than_days: int, limit: int) -> int:
    """Remove tasks that ended long ago; how many."""
    age = func.make_interval(0, 0, 0, older_than_days)
    old = select(tasks.c.id).where(tasks.c.finished_at < func.clock_timestamp() - age).limit(limit)
    result = await connection.execute(delete(tasks).where(tasks.c.id.in_(old.scalar_subquery())))
    return int(result.rowcount)


async def _mine(connection: AsyncConnection, task: Task, **values: object) -> None:
    result = await connection.execute(
        update(tasks)
        .where(tasks.c.id == task.id, tasks.c.status == "running", tasks.c.attempt == task.attempt)
        .values(**values)
    )
    if result.rowcount != 1:
        raise TaskLost(f"task {task.id} was taken over or ended")


def _task(row: AnyRow) -> Task:
    return Task(
        id=row.id,
        queue=Queue(row.queue),
        warehouse_id=row.warehouse_id,
        entity_id=row.entity_id,
        attempt=row.attempt,
        payload=row.payload,
    )


def _seconds(seconds: float) -> object:
    return func.make_interval(0, 0, 0, 0, 0, 0, seconds)
