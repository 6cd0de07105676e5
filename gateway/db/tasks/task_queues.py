# SPDX-License-Identifier: Apache-2.0
"""Statements on the settings of task queues and on the removal of ended tasks.

Each project has a recurring task that removes the logs of ended tasks. It is scheduled here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import and_, delete, exists, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.schema.tasks import ACTIVE_TASKS, task_log, task_queue_configs, tasks
from gateway.db.schema.warehouses import projects, warehouses
from gateway.db.tasks.tasks import ACTIVE, Queue, Status

CLEANUP_PERIOD: Final = timedelta(days=1)
RETENTION: Final = timedelta(days=90)
"""The default period of the cleanup of ended tasks, and their default retention."""

_PERIOD = "cleanup_seconds"
_KEPT = "retention_seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """The configuration of a queue in a warehouse or project. The two periods are those of `task_log_cleanup`."""

    heartbeat_seconds: int | None = None
    cleanup_period: timedelta = CLEANUP_PERIOD
    retention: timedelta = RETENTION


async def settings(
    connection: AsyncConnection, queue: Queue, *, warehouse_id: UUID | None = None, project_id: str | None = None
) -> QueueSettings:
    """Return the configuration of the queue. Values that are not configured have their defaults."""
    statement = select(task_queue_configs.c.config, task_queue_configs.c.heartbeat_seconds).where(
        task_queue_configs.c.queue == queue.value,
        task_queue_configs.c.warehouse_id == warehouse_id
        if project_id is None
        else task_queue_configs.c.project_id == project_id,
    )
    row = (await connection.execute(statement)).one_or_none()
    return QueueSettings() if row is None else _decoded(row.config, row.heartbeat_seconds)


async def configure(
    connection: AsyncConnection,
    queue: Queue,
    given: QueueSettings,
    *,
    warehouse_id: UUID | None = None,
    project_id: str | None = None,
) -> None:
    """Replace the configuration of the queue. A log cleanup that is already scheduled becomes due by the new period."""
    config = {}
    if queue is Queue.TASK_LOG_CLEANUP:
        config = {_PERIOD: given.cleanup_period.total_seconds(), _KEPT: given.retention.total_seconds()}
    values = {"config": config, "heartbeat_seconds": given.heartbeat_seconds, "updated_at": func.clock_timestamp()}
    index = [task_queue_configs.c.warehouse_id if project_id is None else task_queue_configs.c.project_id]
    await connection.execute(
        insert(task_queue_configs)
        .values(queue=queue.value, warehouse_id=warehouse_id, project_id=project_id, **values)
        .on_conflict_do_update(index_elements=[*index, task_queue_configs.c.queue], set_=values)
    )
    if queue is Queue.TASK_LOG_CLEANUP:
        await connection.execute(
            update(tasks)
            .where(
                tasks.c.project_id == project_id,
                tasks.c.queue == queue.value,
                tasks.c.status == Status.SCHEDULED,
                tasks.c.attempt == 0,
            )
            .values(scheduled_for=tasks.c.created_at + given.cleanup_period)
        )


async def schedule_cleanups(connection: AsyncConnection, *, project_id: str | None = None) -> int:
    """Schedule the log cleanup of every project (or of this one), one period after the last cleanup. Return the number.

    Any number of processes may call it: a project has one active task of this kind (`tasks_active_project_key`).
    """
    mine = and_(tasks.c.project_id == projects.c.id, tasks.c.queue == Queue.TASK_LOG_CLEANUP.value)
    last = select(func.max(tasks.c.finished_at)).where(mine).scalar_subquery()
    statement = (
        select(projects.c.id, task_queue_configs.c.config, last.label("last"))
        .outerjoin(
            task_queue_configs,
            and_(
                task_queue_configs.c.project_id == projects.c.id,
                task_queue_configs.c.queue == Queue.TASK_LOG_CLEANUP.value,
            ),
        )
        .where(~exists().where(mine, tasks.c.status.in_(ACTIVE)))
    )
    if project_id is not None:
        statement = statement.where(projects.c.id == project_id)
    added = 0
    for row in (await connection.execute(statement)).all():
        period = QueueSettings() if row.config is None else _decoded(row.config, None)
        result = await connection.execute(
            insert(tasks)
            .values(
                id=uuid7(),
                queue=Queue.TASK_LOG_CLEANUP.value,
                project_id=row.id,
                payload={},
                scheduled_for=func.clock_timestamp() if row.last is None else row.last + period.cleanup_period,
            )
            .on_conflict_do_nothing()
        )
        added += int(result.rowcount)
    return added


async def remove_ended(connection: AsyncConnection, project_id: str, *, older_than: timedelta, limit: int) -> int:
    """Delete tasks of a project and its warehouses, and their attempts, that ended before `older_than`.

    Return the number of deleted rows.
    """
    before = func.clock_timestamp() - older_than
    theirs = or_(
        tasks.c.project_id == project_id,
        tasks.c.warehouse_id.in_(select(warehouses.c.id).where(warehouses.c.project_id == project_id)),
    )
    # The rows are locked with the condition. Otherwise a deletion could wait for a concurrent restart of a task
    # (`task_lists.reschedule`), and then delete the task without checking again that it has ended.
    old = select(tasks.c.id).where(theirs, tasks.c.finished_at < before).limit(limit)
    held = old.with_for_update(skip_locked=True, of=tasks)
    removed = await connection.execute(delete(tasks).where(tasks.c.id.in_(held)))
    attempts = (
        select(task_log.c.task_id, task_log.c.attempt)
        .join(tasks, tasks.c.id == task_log.c.task_id)
        .where(theirs, task_log.c.ended_at < before)
        .limit(limit)
        .cte("attempts")
    )
    more = await connection.execute(
        delete(task_log).where(task_log.c.task_id == attempts.c.task_id, task_log.c.attempt == attempts.c.attempt)
    )
    return int(removed.rowcount) + int(more.rowcount)


async def count(connection: AsyncConnection) -> dict[tuple[str, str], int]:
    """Return the number of active tasks by queue and status."""
    statement = (
        select(tasks.c.queue, tasks.c.status, func.count()).where(ACTIVE_TASKS).group_by(tasks.c.queue, tasks.c.status)
    )
    return {(row[0], row[1]): int(row[2]) for row in await connection.execute(statement)}


def _decoded(config: Mapping[str, float], heartbeat_seconds: int | None) -> QueueSettings:
    return QueueSettings(
        heartbeat_seconds=heartbeat_seconds,
        cleanup_period=timedelta(seconds=config[_PERIOD]) if _PERIOD in config else CLEANUP_PERIOD,
        retention=timedelta(seconds=config[_KEPT]) if _KEPT in config else RETENTION,
    )
