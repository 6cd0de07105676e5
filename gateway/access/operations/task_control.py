# SPDX-License-Identifier: Apache-2.0
"""What can be asked about background tasks: to see them and to steer them (`lakekeeper.md` 3.9).

A task of a warehouse may be about one table or view in it. Who may see (or steer) all tasks of the warehouse is known
at the door; for everybody else the use case asks about the thing of each task, as lists do, because which thing that is
stands in the task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from gateway.access.demand import Demand, Facts
from gateway.access.operation import Durability, Operation
from gateway.access.refs import ProjectRef, WarehouseRef
from gateway.access.relations import Can
from gateway.access.wire_tasks import ControlTasksRequest, ListProjectTasksRequest, ListTasksRequest


@dataclass(frozen=True)
class ListTasks(Operation):
    """The tasks of a warehouse, the newest first, as far as the caller sees them."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/task/list"
    reads_because: ClassVar[str] = "it lists"
    warehouse: WarehouseRef
    request: ListTasksRequest

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.USE, self.warehouse), Demand(Can.GET_ALL_TASKS, self.warehouse, required=False))


@dataclass(frozen=True)
class GetTask(Operation):
    """One task of a warehouse with its last attempts."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/task/by-id/{task_id}"
    warehouse: WarehouseRef
    task_id: UUID
    attempts: int = 5

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.USE, self.warehouse), Demand(Can.GET_ALL_TASKS, self.warehouse, required=False))

    def facts(self) -> Facts:
        return {"task_id": str(self.task_id)}


@dataclass(frozen=True)
class ControlTasks(Operation):
    """Stop, cancel or begin tasks of a warehouse: all that are named, or none."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/task/control"
    returns: ClassVar[int] = 204
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    warehouse: WarehouseRef
    request: ControlTasksRequest

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.USE, self.warehouse),
            Demand(Can.CONTROL_ALL_TASKS, self.warehouse, required=False),
            Demand(Can.GET_ALL_TASKS, self.warehouse, required=False),
        )

    def facts(self) -> Facts:
        return _control_facts(self.request)


@dataclass(frozen=True)
class ListProjectTasks(Operation):
    """The tasks of a project itself, the newest first."""

    endpoint: ClassVar[str] = "POST /management/v1/project/task/list"
    reads_because: ClassVar[str] = "it lists"
    project: ProjectRef
    request: ListProjectTasksRequest

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_PROJECT_TASKS, self.project),)


@dataclass(frozen=True)
class GetProjectTask(Operation):
    """One task of a project itself with its last attempts."""

    endpoint: ClassVar[str] = "GET /management/v1/project/task/by-id/{task_id}"
    project: ProjectRef
    task_id: UUID
    attempts: int = 5

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_PROJECT_TASKS, self.project),)

    def facts(self) -> Facts:
        return {"task_id": str(self.task_id)}


@dataclass(frozen=True)
class ControlProjectTasks(Operation):
    """Stop, cancel or begin tasks of a project itself: all that are named, or none."""

    endpoint: ClassVar[str] = "POST /management/v1/project/task/control"
    returns: ClassVar[int] = 204
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    project: ProjectRef
    request: ControlTasksRequest

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CONTROL_PROJECT_TASKS, self.project),)

    def facts(self) -> Facts:
        return _control_facts(self.request)


def _control_facts(request: ControlTasksRequest) -> Facts:
    return {
        "action": request.action.name,
        "task_ids": tuple(str(id) for id in dict.fromkeys(request.task_ids)),
    }
