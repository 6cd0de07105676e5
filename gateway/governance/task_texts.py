# SPDX-License-Identifier: Apache-2.0
"""Tasks as answers tell them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import msgspec

from gateway.access.operations.deleted import Kept, kept
from gateway.access.refs import TABULARS, ObjectKey, ObjectType
from gateway.db.rows import AnyRow
from gateway.db.tasks import Status
from gateway.protocol.tasks import (
    Entity,
    EntityFilter,
    GenericTableEntity,
    ProjectTask,
    TableEntity,
    TaskAttempt,
    TaskStatus,
    ViewEntity,
    WarehouseEntity,
    WarehouseTask,
)

STATUSES: Final[dict[Status, TaskStatus]] = {
    Status.SCHEDULED: "SCHEDULED",
    Status.RUNNING: "RUNNING",
    Status.STOPPING: "STOPPING",
    Status.SUCCEEDED: "SUCCESS",
    Status.FAILED: "FAILED",
    Status.CANCELLED: "CANCELLED",
}

_GENERIC_TABLE: Final = "generic_table"


@dataclass(frozen=True, slots=True)
class TaskEntity:
    """What a task is about: for the relationship model, and for answers."""

    key: ObjectKey
    told: Entity


def entity_of(row: AnyRow) -> TaskEntity | None:
    """What the task is about; None when it is about nothing in the warehouse."""
    if row.entity_id is None or row.entity_type not in list(ObjectType):
        return None
    key = ObjectKey(ObjectType(row.entity_type), str(row.entity_id))
    match row.entity_type:
        case "table":
            return TaskEntity(key, TableEntity(table_id=row.entity_id))
        case "view":
            return TaskEntity(key, ViewEntity(view_id=row.entity_id))
        case _:
            return TaskEntity(key, GenericTableEntity(generic_table_id=row.entity_id))


def kept_of(row: AnyRow) -> Kept | None:
    """What the task is about, for the door; whether it is there is another question."""
    if row.entity_type not in TABULARS:
        return None
    return kept(ObjectType(row.entity_type), row.warehouse_id, row.entity_id)


def filter_of(entity: EntityFilter) -> tuple[str, UUID | None]:
    """(type, id) of rows about it; the id is None for what is about the warehouse itself."""
    match entity:
        case TableEntity(table_id=id):
            return ObjectType.TABLE.value, id
        case ViewEntity(view_id=id):
            return ObjectType.VIEW.value, id
        case GenericTableEntity(generic_table_id=id):
            return _GENERIC_TABLE, id
        case WarehouseEntity():
            return ObjectType.WAREHOUSE.value, None


def project_task(row: AnyRow) -> ProjectTask:
    """A project's own task."""
    return _task(row, row.project_id)


def warehouse_task(row: AnyRow, project_id: str) -> WarehouseTask:
    """A task of a warehouse of this project."""
    entity = entity_of(row)
    return WarehouseTask(
        **msgspec.structs.asdict(_task(row, project_id)),
        warehouse_id=row.warehouse_id,
        entity=None if entity is None else entity.told,
        entity_name=None if entity is None else list(row.entity_name),
    )


def _task(row: AnyRow, project_id: str) -> ProjectTask:
    return ProjectTask(
        task_id=row.id,
        project_id=project_id,
        queue_name=row.queue,
        status=STATUSES[Status(row.status)],
        scheduled_for=row.scheduled_for,
        attempt=row.attempt,
        progress=row.progress,
        created_at=row.created_at,
        picked_up_at=row.picked_up_at,
        last_heartbeat_at=row.heartbeat_at,
        parent_task_id=row.parent_task_id,
        updated_at=row.updated_at,
    )


def told_attempts(rows: Sequence[AnyRow]) -> list[TaskAttempt]:
    """Attempts that ended."""
    return [
        TaskAttempt(
            attempt=row.attempt,
            status=STATUSES[Status(row.status)],
            scheduled_for=row.scheduled_for,
            started_at=row.started_at,
            duration=None if row.started_at is None else row.ended_at - row.started_at,
            message=row.message,
            created_at=row.ended_at,
            progress=row.progress,
            execution_details=row.execution_details,
        )
        for row in rows
    ]
