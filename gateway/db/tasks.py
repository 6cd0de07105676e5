# SPDX-License-Identifier: Apache-2.0
"""Statements on tasks: work for later that any process may take, one at a time, and take over when its worker dies.

Here it is scheduled, put off and cancelled, in the transaction of what makes that necessary; `attempts` has what its
worker does with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from sqlalchemy import ARRAY, ColumnElement, Function, Text, cast, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.schema.namespaces import namespaces
from gateway.db.schema.tables import tables
from gateway.db.schema.tasks import ACTIVE_TASKS, task_log, tasks


class Queue(StrEnum):
    """The kinds of tasks. The first three have the names of the reference system."""

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


class Cancellation(StrEnum):
    """What became of the active task of an entity that was to be cancelled."""

    NONE = "none"
    """There was none."""
    CANCELLED = "cancelled"
    """It had not been begun and never will be."""
    RUNNING = "running"
    """A worker has it, so it goes on."""


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
            scheduled_for=func.clock_timestamp() + interval(in_seconds) if at is None else at,
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
        await log_attempt(connection, row.id, Status.CANCELLED, reason)
    await connection.execute(
        update(tasks)
        .where(tasks.c.id.in_([row.id for row in cancelled]))
        .values(**over(Status.CANCELLED), last_error=reason)
    )
    outcome = dict.fromkeys(entity_ids, Cancellation.NONE)
    outcome.update((row.entity_id, Cancellation.RUNNING) for row in rows)
    outcome.update((row.entity_id, Cancellation.CANCELLED) for row in cancelled)
    return outcome


async def delay(connection: AsyncConnection, queues: Sequence[Queue], *, seconds: float) -> int:
    """Let no task of these queues be begun, or taken over, for so long; how many wait longer for it."""
    until = func.clock_timestamp() + interval(seconds)
    sooner = update(tasks).where(
        ACTIVE_TASKS, tasks.c.queue.in_([queue.value for queue in queues]), tasks.c.scheduled_for < until
    )
    return (await connection.execute(sooner.values(scheduled_for=until))).rowcount


def over(status: Status) -> dict[str, object]:
    """The values of a task that ended so."""
    now = func.clock_timestamp()
    return {"status": status.value, "finished_at": now, "updated_at": now}


async def log_attempt(
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


def interval(seconds: float | ColumnElement[float]) -> Function[timedelta]:
    """So many seconds as PostgreSQL adds them to a time."""
    return func.make_interval(0, 0, 0, 0, 0, 0, seconds)
