# SPDX-License-Identifier: Apache-2.0
"""Statements on tasks for the management API: pages of tasks, a task with its attempts, and control of tasks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    DateTime,
    Uuid,
    and_,
    exists,
    false,
    func,
    literal,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.door.list_visibility import Holders
from gateway.db.engine.list_candidates import SPOKEN_FOR
from gateway.db.pools.rows import columns_for, fetch_all
from gateway.db.schema.tables import namespaces, tables
from gateway.db.schema.tasks import task_log, tasks
from gateway.db.tasks.tasks import Queue, Status


class TaskRow(NamedTuple):
    """A task of a warehouse, or a task of a project itself."""

    id: UUID
    queue: str
    warehouse_id: UUID | None
    project_id: str | None
    entity_type: str | None
    entity_id: UUID | None
    entity_name: Sequence[str]
    parent_task_id: UUID | None
    status: str
    attempt: int
    scheduled_for: datetime
    picked_up_at: datetime | None
    heartbeat_at: datetime | None
    progress: float
    execution_details: dict[str, Any] | None
    payload: dict[str, Any]
    last_error: str | None
    created_at: datetime
    updated_at: datetime | None


class AttemptRow(NamedTuple):
    """An attempt that ended."""

    attempt: int
    status: str
    scheduled_for: datetime
    started_at: datetime | None
    ended_at: datetime
    message: str | None
    progress: float
    execution_details: dict[str, Any] | None


_COLUMNS: Final = columns_for(TaskRow, tasks)


class AlreadyActive(Exception):
    """Another task of the same queue is active for the entity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """A filter of the tasks of one warehouse, or of a project itself. A field that is None does not filter.

    `entities` are pairs (type, id); the id None selects tasks on the warehouse itself. `of_existing_only` excludes
    tasks of deleted entities. With `holders`, tasks are excluded unless one of these principals has a grant on the
    entity or on a namespace above it.
    """

    warehouse_id: UUID | None = None
    project_id: str | None = None
    queues: Collection[str] | None = None
    statuses: Collection[Status] | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    entities: Collection[tuple[str, UUID | None]] | None = None
    of_existing_only: bool = False
    holders: Holders | None = None


async def page(
    connection: AsyncConnection, filter: TaskFilter, *, after: tuple[datetime, UUID] | None, limit: int
) -> Sequence[TaskRow]:
    """Return tasks, newest first, starting after the task `after`."""
    conditions = [_owned(filter.warehouse_id, filter.project_id)]
    if filter.queues is not None:
        conditions.append(tasks.c.queue.in_(filter.queues))
    if filter.statuses is not None:
        conditions.append(tasks.c.status.in_([status.value for status in filter.statuses]))
    if filter.created_after is not None:
        conditions.append(tasks.c.created_at > filter.created_after)
    if filter.created_before is not None:
        conditions.append(tasks.c.created_at < filter.created_before)
    if filter.entities is not None:
        conditions.append(_about(filter.entities))
    if filter.of_existing_only:
        # Tasks of deleted entities are left out for these callers: no grant on the entity can make the task visible.
        conditions.append(exists().where(tables.c.id == tasks.c.entity_id))
    if filter.holders is not None:
        conditions.append(_visible_by_grants(filter.holders))
    if after is not None:
        position = tuple_(literal(after[0], DateTime(timezone=True)), literal(after[1], Uuid()))
        conditions.append(tuple_(tasks.c.created_at, tasks.c.id) < position)
    statement = select(*_COLUMNS).where(*conditions).order_by(tasks.c.created_at.desc(), tasks.c.id.desc()).limit(limit)
    return await fetch_all(connection, TaskRow, statement)


async def get(
    connection: AsyncConnection, ids: Sequence[UUID], *, warehouse_id: UUID | None = None, project_id: str | None = None
) -> dict[UUID, TaskRow]:
    """Return those of the given tasks that belong to the warehouse, or to the project itself, by id."""
    statement = select(*_COLUMNS).where(tasks.c.id.in_(ids), _owned(warehouse_id, project_id))
    return {row.id: row for row in await fetch_all(connection, TaskRow, statement)}


async def existing(connection: AsyncConnection, entity_ids: Collection[UUID | None]) -> set[UUID]:
    """Return those of the ids that belong to tables, views or generic tables, including dropped but not staged ones."""
    statement = select(tables.c.id).where(
        tables.c.id.in_([id for id in entity_ids if id is not None]), tables.c.staged_by.is_(None)
    )
    return set((await connection.execute(statement)).scalars())


async def hold(
    connection: AsyncConnection, ids: Sequence[UUID], *, warehouse_id: UUID | None = None, project_id: str | None = None
) -> dict[UUID, TaskRow]:
    """Return the tasks as `get` does, and lock them until the transaction ends."""
    statement = (
        select(*_COLUMNS)
        .where(tasks.c.id.in_(ids), _owned(warehouse_id, project_id))
        .order_by(tasks.c.id)
        .with_for_update()
    )
    return {row.id: row for row in await fetch_all(connection, TaskRow, statement)}


async def attempts(connection: AsyncConnection, id: UUID, *, limit: int) -> Sequence[AttemptRow]:
    """Return the last `limit` attempts that ended, newest first."""
    statement = (
        select(*columns_for(AttemptRow, task_log))
        .where(task_log.c.task_id == id)
        .order_by(task_log.c.attempt.desc())
        .limit(limit)
    )
    return await fetch_all(connection, AttemptRow, statement)


async def stop(connection: AsyncConnection, ids: Sequence[UUID], *, again_in: float) -> None:
    """Request that the workers of running tasks stop. Each task starts again after `again_in` seconds."""
    now = func.clock_timestamp()
    await connection.execute(
        update(tasks)
        .where(tasks.c.id.in_(ids), tasks.c.status == Status.RUNNING)
        .values(
            status=Status.STOPPING.value,
            scheduled_for=now + func.make_interval(0, 0, 0, 0, 0, 0, again_in),
            updated_at=now,
        )
    )


async def cancel(connection: AsyncConnection, ids: Sequence[UUID], *, reason: str) -> None:
    """Cancel scheduled tasks."""
    now = func.clock_timestamp()
    await connection.execute(
        update(tasks)
        .where(tasks.c.id.in_(ids), tasks.c.status == Status.SCHEDULED)
        .values(status=Status.CANCELLED.value, finished_at=now, updated_at=now, last_error=reason)
    )


async def reschedule(connection: AsyncConnection, ids: Sequence[UUID], *, at: datetime | None) -> None:
    """Set the start of tasks to the time `at` (None: now). Raises AlreadyActive.

    It applies to scheduled tasks, to stopping tasks once they have stopped, and to failed tasks, which get the full
    number of attempts again.
    """
    now = func.clock_timestamp()
    due = now if at is None else literal(at, DateTime(timezone=True))
    await connection.execute(
        update(tasks)
        .where(tasks.c.id.in_(ids), tasks.c.status.in_([Status.SCHEDULED.value, Status.STOPPING.value]))
        .values(scheduled_for=due, updated_at=now)
    )
    try:
        await connection.execute(
            update(tasks)
            .where(tasks.c.id.in_(ids), tasks.c.status == Status.FAILED)
            .values(
                status=Status.SCHEDULED.value,
                scheduled_for=due,
                updated_at=now,
                finished_at=None,
                interruptions=tasks.c.attempt,
            )
        )
    except IntegrityError as clash:
        raise AlreadyActive("another task is active for the entity") from clash


def named_queue(name: str) -> Queue | None:
    """Return the queue that has this name, or had it in versions of the reference system.

    Return None if there is none.
    """
    if name == "tabular_expiration":
        return Queue.SOFT_DELETION
    return Queue(name) if name in list(Queue) else None


def _visible_by_grants(holders: Holders) -> ColumnElement[bool]:
    """Return the condition that a holder has a grant on the task's entity or above it.

    If it matches too many tasks, that only costs additional checks.
    """
    t, n = tables.alias("t"), namespaces.alias("n")
    granted = text(SPOKEN_FOR).bindparams(user=holders.user, roles=list(holders.roles))
    return exists().select_from(t.join(n, n.c.id == t.c.namespace_id)).where(t.c.id == tasks.c.entity_id, granted)


def _owned(warehouse_id: UUID | None, project_id: str | None) -> ColumnElement[bool]:
    if (warehouse_id is None) == (project_id is None):
        raise ValueError("give either a warehouse or a project, and not both")
    return tasks.c.project_id == project_id if warehouse_id is None else tasks.c.warehouse_id == warehouse_id


def _about(entities: Collection[tuple[str, UUID | None]]) -> ColumnElement[bool]:
    some = [
        tasks.c.entity_id.is_(None) if id is None else and_(tasks.c.entity_type == type, tasks.c.entity_id == id)
        for type, id in entities
    ]
    return or_(*some) if some else false()
