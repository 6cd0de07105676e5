# SPDX-License-Identifier: Apache-2.0
"""Operations on the queues of background tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.change_event import ChangeEvent, EventDeclaration
from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation, QuestionOperation, ReadOperation
from gateway.access.refs import WarehouseRef
from gateway.access.relations import Can
from gateway.access.request import InBody, InPath, OfRequest, Path
from gateway.protocol.tasks import SetQueueConfigRequest


@dataclass(frozen=True)
class GetQueueConfig(ReadOperation):
    """Return the configuration of a task queue in a warehouse."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/task-queue/{queue_name}/config"
    warehouse: InPath[WarehouseRef]
    queue: Annotated[str, Path("queue_name")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_TASK_QUEUE_CONFIG, self.warehouse),)

    def facts(self) -> Facts:
        return {"queue": self.queue}


@dataclass(frozen=True)
class SetQueueConfig(ChangeOperation):
    """Replace the configuration of a task queue in a warehouse."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/task-queue/{queue_name}/config"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse")
    returns: ClassVar[int] = 204
    warehouse: InPath[WarehouseRef]
    queue: Annotated[str, Path("queue_name")]
    request: InBody[SetQueueConfigRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.MODIFY_TASK_QUEUE_CONFIG, self.warehouse),)

    def facts(self) -> Facts:
        return {"queue": self.queue}


@dataclass(frozen=True)
class ScheduleTask(QuestionOperation):
    """Refuse to schedule a task manually: each task of this server results from a change, or recurs."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/task-queue/{queue_name}/schedule"
    # Changes nothing: no queue accepts manual tasks, so the answer is always an error.
    warehouse: InPath[WarehouseRef]
    queue: Annotated[str, Path("queue_name")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CONTROL_ALL_TASKS, self.warehouse),)

    def facts(self) -> Facts:
        return {"queue": self.queue}


@dataclass(frozen=True)
class GetTaskLogCleanupConfig(ReadOperation):
    """Return how often a project removes its ended tasks, and how long it keeps them."""

    endpoint: ClassVar[str] = "GET /management/v1/project/task-queue/task_log_cleanup/config"
    project: OfRequest

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_TASK_QUEUE_CONFIG, self.project),)


@dataclass(frozen=True)
class SetTaskLogCleanupConfig(ChangeOperation):
    """Set how often a project removes its ended tasks, and how long it keeps them."""

    endpoint: ClassVar[str] = "POST /management/v1/project/task-queue/task_log_cleanup/config"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="project")
    returns: ClassVar[int] = 204
    project: OfRequest
    request: InBody[SetQueueConfigRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.MODIFY_TASK_QUEUE_CONFIG, self.project),)
