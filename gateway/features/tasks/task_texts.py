# SPDX-License-Identifier: Apache-2.0
"""Convert task rows to response bodies. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import msgspec

from gateway.access.nouns.refs import TABULARS, ObjectKey, ObjectType
from gateway.access.nouns.resolved import ResolvedWarehouse
from gateway.access.operations.deletion import Kept, kept
from gateway.access.operations.task_bodies import (
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
from gateway.db.tasks.task_lists import AttemptRow, TaskRow
from gateway.db.tasks.tasks import Status
from gateway.iceberg.errors import BadRequestException

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
    """The object of a task: its key in OpenFGA, and its wire form."""

    key: ObjectKey
    entity_answer: Entity


def entity_of(row: TaskRow) -> TaskEntity | None:
    """Return the object of a task, or None if the task is not about an object inside the warehouse."""
    if row.entity_id is None or row.entity_type not in list(ObjectType):
        return None
    key = ObjectKey(ObjectType(row.entity_type), str(row.entity_id))
    match row.entity_type:
        case "table":
            return TaskEntity(key, TableEntity(table_id=row.entity_id, warehouse_id=row.warehouse_id))
        case "view":
            return TaskEntity(key, ViewEntity(view_id=row.entity_id, warehouse_id=row.warehouse_id))
        case _:
            return TaskEntity(key, GenericTableEntity(generic_table_id=row.entity_id, warehouse_id=row.warehouse_id))


def entity_ref(row: TaskRow) -> Kept | None:
    """Return the reference of a task's table or view for the door. The object may have been deleted."""
    if row.entity_type not in TABULARS or row.warehouse_id is None or row.entity_id is None:
        return None
    return kept(ObjectType(row.entity_type), row.warehouse_id, row.entity_id)


def filter_of(entity: EntityFilter, warehouse_id: UUID) -> tuple[str, UUID | None]:
    """Return (entity type, id) by which task rows are filtered. The id is None for tasks of the warehouse itself.

    Raises BadRequestException for an entity of another warehouse.
    """
    if entity.warehouse_id not in (None, warehouse_id):
        raise BadRequestException(
            f"The entity is in the warehouse {entity.warehouse_id}, and the path names {warehouse_id}. Send a "
            "request for each warehouse."
        )
    match entity:
        case TableEntity(table_id=id):
            return ObjectType.TABLE.value, id
        case ViewEntity(view_id=id):
            return ObjectType.VIEW.value, id
        case GenericTableEntity(generic_table_id=id):
            return _GENERIC_TABLE, id
        case WarehouseEntity():
            return ObjectType.WAREHOUSE.value, None


def warehouse_task(row: TaskRow, warehouse: ResolvedWarehouse) -> WarehouseTask:
    """Return a task of a warehouse in wire form."""
    entity = entity_of(row)
    return WarehouseTask(
        **msgspec.structs.asdict(project_task(row, warehouse.project_id)),
        warehouse_id=warehouse.id,
        entity=None if entity is None else entity.entity_answer,
        entity_name=None if entity is None else list(row.entity_name),
    )


def project_task(row: TaskRow, project_id: str) -> ProjectTask:
    """Return a task of a project, or of one of its warehouses, in wire form."""
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


def attempt_answers(rows: Sequence[AttemptRow]) -> list[TaskAttempt]:
    """Return ended attempts in wire form."""
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
