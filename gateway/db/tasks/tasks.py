# SPDX-License-Identifier: Apache-2.0
"""Statements that schedule, delay and cancel tasks, in the transaction of the change that needs it.

A task is background work. Any process may run it, but only one at a time, and another one takes over if it dies.
`task_runs` runs tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy import ARRAY, ColumnElement, Function, Text, cast, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.schema.tables import namespaces, tables
from gateway.db.schema.tasks import ACTIVE_TASKS, task_log, tasks


class Queue(StrEnum):
    """The kinds of tasks. The first three have the names of the reference system."""

    SOFT_DELETION = "soft_deletion"
    """Delete a dropped table or view at the end of its retention."""
    TABULAR_PURGE = "tabular_purge"
    """Delete the files of a deleted table or view."""
    TASK_LOG_CLEANUP = "task_log_cleanup"
    """Delete ended tasks of a project and its warehouses. The task belongs to the project."""
    EXPIRE_STAGED_TABLE = "expire_staged_table"
    """Delete a staged table that was not created in time."""


class Status(StrEnum):
    """The status of a task."""

    SCHEDULED = "scheduled"
    RUNNING = "running"
    STOPPING = "stopping"
    """Its worker is requested to stop and still runs."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


ACTIVE: Final = (Status.SCHEDULED.value, Status.RUNNING.value, Status.STOPPING.value)
BEGUN: Final = (Status.RUNNING.value, Status.STOPPING.value)


class Cancellation(StrEnum):
    """The result of canceling an entity's active task."""

    NONE = "none"
    """There was no active task."""
    CANCELLED = "cancelled"
    """The task was cancelled."""
    RUNNING = "running"
    """A worker runs the task, so it continues."""


class Payload(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data that a task needs in addition to its entity. It is stored as JSON. Most tasks need none."""


class Files(StrEnum):
    """Select the disposal of the files of a table after its permanent deletion."""

    PURGE = "purge"
    KEEP = "keep"
    LAST = "last"
    """Delete the last metadata file after the cleanup window. Until then it can be registered again."""


class FileDisposal(Payload, frozen=True):
    """The payload of `SOFT_DELETION`: the drop's request about the files, and the last metadata file to delete."""

    files: Files
    last_file: str | None = None


class PurgedLocation(Payload, frozen=True):
    """The payload of `TABULAR_PURGE`: the location whose files are deleted."""

    location: str
    location_key: str


async def add(
    connection: AsyncConnection,
    queue: Queue,
    *,
    warehouse_id: UUID,
    entity_id: UUID,
    payload: Payload | None = None,
    entity_type: str = "table",
    entity_name: Sequence[str] = (),
    in_seconds: float = 0.0,
    at: datetime | None = None,
    parent: UUID | None = None,
) -> UUID | None:
    """Schedule a task in the transaction of the change that needs it.

    Return its id, or None if a task of the queue is already active for the entity. It is due at the time `at`, or after
    `in_seconds`. `entity_name` is the path of the entity, for display. By default it is read from the entity's row, or
    from the parent task if the row is deleted.
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
            payload={} if payload is None else msgspec.to_builtins(payload),
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
    """Cancel the entity's active task in this queue unless a worker runs it. Call it in the transaction that makes it
    needless.

    No worker can start it until that transaction ends. `even_running` also cancels a running task. Its worker then gets
    TaskLost and changes nothing.
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
    """Cancel the active tasks of many entities as `cancel` does. The result has an entry for each entity."""
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
    """Delay the start and the takeover of all tasks in these queues by `seconds`.

    Return the number of delayed tasks.
    """
    until = func.clock_timestamp() + interval(seconds)
    sooner = update(tasks).where(
        ACTIVE_TASKS, tasks.c.queue.in_([queue.value for queue in queues]), tasks.c.scheduled_for < until
    )
    return (await connection.execute(sooner.values(scheduled_for=until))).rowcount


def over(status: Status) -> dict[str, object]:
    """Return the values of a task's columns when it ends with this status."""
    now = func.clock_timestamp()
    return {"status": status.value, "finished_at": now, "updated_at": now}


async def log_attempt(
    connection: AsyncConnection, id: UUID, status: Status, message: str | None, *, attempt: int | None = None
) -> None:
    """Record the end of the task's current attempt. With `attempt`, do so only if it is that attempt."""
    columns = ("attempt", "scheduled_for", "picked_up_at", "progress", "execution_details")
    ended = select(
        tasks.c.id, *(tasks.c[name] for name in columns), literal(status.value), literal(message, Text)
    ).where(tasks.c.id == id, tasks.c.status.in_(BEGUN))
    if attempt is not None:
        ended = ended.where(tasks.c.attempt == attempt)
    names = ["task_id", "attempt", "scheduled_for", "started_at", "progress", "execution_details", "status", "message"]
    await connection.execute(insert(task_log).from_select(names, ended).on_conflict_do_nothing())


def _known_name(entity_id: UUID, parent: UUID | None) -> ColumnElement[Sequence[str]]:
    """Return the path of a table or view from its row, or else from the parent task."""
    of_row = (
        select(func.array_append(namespaces.c.levels, tables.c.name))
        .join_from(tables, namespaces, namespaces.c.id == tables.c.namespace_id)
        .where(tables.c.id == entity_id)
    )
    of_parent = select(tasks.c.entity_name).where(tasks.c.id == parent)
    nameless = cast([], ARRAY(Text))
    return func.coalesce(of_row.scalar_subquery(), of_parent.scalar_subquery(), nameless)


def interval(seconds: float | ColumnElement[float]) -> Function[timedelta]:
    """Return an SQL interval of seconds."""
    return func.make_interval(0, 0, 0, 0, 0, 0, seconds)
