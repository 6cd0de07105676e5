# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints about tasks and their queues."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, Request

#: The names of how a task is; in the database they are other words (`db/tasks.py`).
TaskStatus = Literal["RUNNING", "SCHEDULED", "STOPPING", "CANCELLED", "SUCCESS", "FAILED"]

_QueueName = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[^\x00]+(?![\s\S])$")]

_PageToken = Annotated[str, msgspec.Meta(max_length=256)]


class TableEntity(Request, frozen=True, tag_field="type", tag="table"):
    """A table."""

    table_id: UUID


class ViewEntity(Request, frozen=True, tag_field="type", tag="view"):
    """A view."""

    view_id: UUID


class GenericTableEntity(Request, frozen=True, tag_field="type", tag="generic-table"):
    """A generic table."""

    generic_table_id: UUID


class WarehouseEntity(Request, frozen=True, tag_field="type", tag="warehouse"):
    """The warehouse itself: tasks that are about nothing in it."""


Entity = TableEntity | ViewEntity | GenericTableEntity

EntityFilter = TableEntity | ViewEntity | GenericTableEntity | WarehouseEntity


class ListProjectTasksRequest(Request, frozen=True):
    """`POST /project/task/list`; what is not given filters nothing. `page-size` is bounded by the server's own."""

    status: Annotated[tuple[TaskStatus, ...], msgspec.Meta(max_length=100)] | None = None
    queue_name: Annotated[tuple[_QueueName, ...], msgspec.Meta(max_length=100)] | None = None
    created_after: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    created_before: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    page_token: _PageToken | None = None
    page_size: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None


class ListTasksRequest(ListProjectTasksRequest, frozen=True):
    """`POST /warehouse/{w}/task/list`."""

    entities: Annotated[tuple[EntityFilter, ...], msgspec.Meta(max_length=100)] | None = None


class _Action(Request, frozen=True):
    """What is done to tasks. `name` is its name on the wire."""

    @property
    def name(self) -> str:
        return str(self.__struct_config__.tag)


class Stop(_Action, frozen=True, tag_field="action-type", tag="stop"):
    """Ask the worker to end its attempt; the task is begun again later."""


class Cancel(_Action, frozen=True, tag_field="action-type", tag="cancel"):
    """Never begin it; refused while a worker has it."""


class RunNow(_Action, frozen=True, tag_field="action-type", tag="run-now"):
    """Begin it as soon as a worker is free."""


class RunAt(_Action, frozen=True, tag_field="action-type", tag="run-at"):
    """Begin it at this time."""

    scheduled_for: Annotated[datetime, msgspec.Meta(tz=True)]


ControlAction = Stop | Cancel | RunNow | RunAt


class ControlTasksRequest(Request, frozen=True):
    """`POST …/task/control`."""

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
    """A task of a warehouse. `entity-name` is the path of the entity when the task was made."""

    warehouse_id: UUID
    entity: Entity | None = None
    entity_name: list[str] | None = None


class TaskAttempt(Answer, frozen=True):
    """One attempt that ended. `duration` is ISO 8601; `created-at` is when the attempt ended and was written down."""

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
    """`GET /project/task/by-id/{id}`: the newest attempts first."""

    task_data: dict[str, Any]
    attempts: list[TaskAttempt]
    execution_details: dict[str, Any] | None = None
    message: str | None = None


class WarehouseTaskDetails(WarehouseTask, frozen=True, kw_only=True):
    """`GET /warehouse/{w}/task/by-id/{id}`: the newest attempts first."""

    task_data: dict[str, Any]
    attempts: list[TaskAttempt]
    execution_details: dict[str, Any] | None = None
    message: str | None = None


class TaskList(Answer, frozen=True):
    """`POST /warehouse/{w}/task/list`, the newest tasks first."""

    tasks: list[WarehouseTask]
    next_page_token: str | None = None


class ProjectTaskList(Answer, frozen=True):
    """`POST /project/task/list`, the newest tasks first."""

    tasks: list[ProjectTask]
    next_page_token: str | None = None


class PlainSettings(Request, frozen=True):
    """What can be set for a queue in general: nothing. `queue-name`, which answers hold, may be sent back."""

    queue_name: _QueueName | None = None


class CleanupSettings(PlainSettings, frozen=True):
    """What can be set for `task_log_cleanup`: how often it runs and how long ended tasks are kept (ISO 8601)."""

    cleanup_period: timedelta | None = None
    retention_period: timedelta | None = None


class ToldSettings(Answer, frozen=True, omit_defaults=True):
    """What holds for a queue; the two times for `task_log_cleanup` alone."""

    queue_name: str
    cleanup_period: timedelta | None = None
    retention_period: timedelta | None = None


class SetQueueConfigRequest(Request, frozen=True):
    """`POST …/task-queue/{q}/config`: replaces what was set. Seconds without a heartbeat after which a task is taken
    over; None for the server's own. The shortest is above twice the longest call of the object store
    (`storage.files.TOTAL_SECONDS`), so that who lost a task in the middle of one is through with it before it is over
    elsewhere.
    """

    queue_config: msgspec.Raw
    max_seconds_since_last_heartbeat: Annotated[int, msgspec.Meta(ge=90, le=31_536_000)] | None = None


class QueueConfig(Answer, frozen=True):
    """`GET …/task-queue/{q}/config`."""

    queue_config: ToldSettings
    max_seconds_since_last_heartbeat: int | None = None


class ScheduleTaskRequest(Request, frozen=True):
    """`POST …/task-queue/{q}/schedule`."""

    entity: EntityFilter | None = None
    scheduled_for: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    task_data: dict[str, Any] | None = None


class ScheduledTask(Answer, frozen=True):
    """Its answer."""

    task_id: UUID
