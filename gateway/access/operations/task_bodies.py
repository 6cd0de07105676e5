# SPDX-License-Identifier: Apache-2.0
"""Bodies of the requests and responses for tasks and task queues."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, StrictRequest

#: The states of a task in the API. The database uses other names (`gateway/db/tasks/tasks.py`).
TaskStatus = Literal["RUNNING", "SCHEDULED", "STOPPING", "CANCELLED", "SUCCESS", "FAILED"]

_QueueName = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[^\x00]+(?![\s\S])$")]

#: The queues of warehouses. The configuration of `task_log_cleanup` belongs to the project.
WarehouseQueue = Literal["soft_deletion", "tabular_purge", "expire_staged_table"]

_PageToken = Annotated[str, msgspec.Meta(max_length=256)]


class _Entity(StrictRequest, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """The object of a task. In requests, `warehouse-id` may only repeat the warehouse of the path."""

    warehouse_id: UUID | None = None


class TableEntity(_Entity, frozen=True, tag="table"):
    """A table."""

    table_id: UUID


class ViewEntity(_Entity, frozen=True, tag="view"):
    """A view."""

    view_id: UUID


class GenericTableEntity(_Entity, frozen=True, tag="generic-table"):
    """A generic table."""

    generic_table_id: UUID


class WarehouseEntity(_Entity, frozen=True, tag="warehouse"):
    """The warehouse itself, for tasks that concern no single table or view."""


Entity = TableEntity | ViewEntity | GenericTableEntity

EntityFilter = TableEntity | ViewEntity | GenericTableEntity | WarehouseEntity


class ListProjectTasksRequest(StrictRequest, frozen=True):
    """Request of `POST /project/task/list`. An absent field does not filter. The server limits `page-size`."""

    status: Annotated[tuple[TaskStatus, ...], msgspec.Meta(max_length=100)] | None = None
    queue_name: Annotated[tuple[_QueueName, ...], msgspec.Meta(max_length=100)] | None = None
    created_after: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    created_before: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    page_token: _PageToken | None = None
    page_size: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None


class ListTasksRequest(ListProjectTasksRequest, frozen=True):
    """Request of `POST /warehouse/{w}/task/list`."""

    entities: Annotated[tuple[EntityFilter, ...], msgspec.Meta(max_length=100)] | None = None


class _Action(StrictRequest, frozen=True):
    """A control action for tasks. `name` is the value of `action-type`."""

    @property
    def name(self) -> str:
        return str(self.__struct_config__.tag)


class Stop(_Action, frozen=True, tag_field="action-type", tag="stop"):
    """Request the worker process to end the attempt. The task is tried again later."""


class Cancel(_Action, frozen=True, tag_field="action-type", tag="cancel"):
    """Cancel the task, so that it never runs. Rejected while a worker process runs it."""


class RunNow(_Action, frozen=True, tag_field="action-type", tag="run-now"):
    """Run the task as soon as a worker process is free."""


class RunAt(_Action, frozen=True, tag_field="action-type", tag="run-at"):
    """Run the task at this time."""

    scheduled_for: Annotated[datetime, msgspec.Meta(tz=True)]


ControlAction = Stop | Cancel | RunNow | RunAt


class ControlTasksRequest(StrictRequest, frozen=True):
    """Request of `POST …/task/control`."""

    action: ControlAction
    task_ids: Annotated[tuple[UUID, ...], msgspec.Meta(min_length=1, max_length=100)]


class ProjectTask(Answer, frozen=True):
    """A task of a project."""

    task_id: UUID
    project_id: str
    queue_name: str
    status: TaskStatus
    scheduled_for: datetime
    attempt: int
    progress: float
    created_at: datetime
    picked_up_at: datetime | None = None
    last_heartbeat_at: datetime | None = None
    parent_task_id: UUID | None = None
    updated_at: datetime | None = None


class WarehouseTask(ProjectTask, frozen=True, kw_only=True):
    """A task of a warehouse. `entity-name` is the path of the entity at the creation of the task."""

    warehouse_id: UUID
    entity: Entity | None = None
    entity_name: list[str] | None = None


class TaskAttempt(Answer, frozen=True):
    """An ended attempt. `duration` is an ISO 8601 duration. `created-at` is the end of the attempt."""

    attempt: int
    status: TaskStatus
    scheduled_for: datetime
    progress: float
    created_at: datetime
    started_at: datetime | None = None
    duration: timedelta | None = None
    message: str | None = None
    execution_details: dict[str, Any] | None = None


class ProjectTaskDetails(ProjectTask, frozen=True, kw_only=True):
    """Response of `GET /project/task/by-id/{id}`: the newest attempts first."""

    task_data: dict[str, Any]
    attempts: list[TaskAttempt]
    execution_details: dict[str, Any] | None = None
    message: str | None = None


class WarehouseTaskDetails(WarehouseTask, frozen=True, kw_only=True):
    """Response of `GET /warehouse/{w}/task/by-id/{id}`: the newest attempts first."""

    task_data: dict[str, Any]
    attempts: list[TaskAttempt]
    execution_details: dict[str, Any] | None = None
    message: str | None = None


class TaskList(Answer, frozen=True):
    """Response of `POST /warehouse/{w}/task/list`: the newest tasks first."""

    tasks: list[WarehouseTask]
    next_page_token: str | None = None


class ProjectTaskList(Answer, frozen=True):
    """Response of `POST /project/task/list`: the newest tasks first."""

    tasks: list[ProjectTask]
    next_page_token: str | None = None


class PlainSettings(StrictRequest, frozen=True):
    """The configuration of a queue without settings of its own. `queue-name`, which responses contain, is accepted if
    it is the name of the queue.
    """

    queue_name: _QueueName | None = None


class CleanupSettings(PlainSettings, frozen=True):
    """The configuration of `task_log_cleanup`: the time between two runs, and the retention of ended tasks, as ISO 8601
    durations.
    """

    cleanup_period: timedelta | None = None
    retention_period: timedelta | None = None


class QueueConfigValues(Answer, frozen=True, omit_defaults=True):
    """The effective configuration of a queue. Only `task_log_cleanup` has the two periods."""

    queue_name: str
    cleanup_period: timedelta | None = None
    retention_period: timedelta | None = None


#: The minimum exceeds twice the longest call of an object store (`gateway.storage.provider.TOTAL_SECONDS`). So a worker
#: process that loses a task during such a call finishes the call before another one can finish the task.
HeartbeatSeconds = Annotated[int, msgspec.Meta(ge=90, le=31_536_000)]


class SetQueueConfigRequest(StrictRequest, frozen=True):
    """Request of `POST …/task-queue/{q}/config`, which replaces the configuration. After
    `max-seconds-since-last-heartbeat` seconds without a heartbeat another worker process takes over a task; null
    selects the server's default.
    """

    queue_config: msgspec.Raw
    max_seconds_since_last_heartbeat: HeartbeatSeconds | None = None


class QueueConfig(Answer, frozen=True):
    """Response of `GET …/task-queue/{q}/config`."""

    queue_config: QueueConfigValues
    max_seconds_since_last_heartbeat: int | None = None


class ScheduleTaskRequest(StrictRequest, frozen=True):
    """Request of `POST …/task-queue/{q}/schedule`."""

    entity: EntityFilter | None = None
    scheduled_for: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    task_data: dict[str, Any] | None = None


class ScheduledTask(Answer, frozen=True):
    """Response of `POST …/task-queue/{q}/schedule`."""

    task_id: UUID
