# SPDX-License-Identifier: Apache-2.0
"""Operations on background tasks and their queues: listing, reading and controlling them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar
from uuid import UUID

from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration, NoEvent
from gateway.access.nouns.authz_errors import task_not_found
from gateway.access.nouns.refs import Ref, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation, QuestionOperation, ReadOperation
from gateway.access.operations.deletion import Kept
from gateway.access.operations.task_bodies import (
    ControlAction,
    ControlTasksRequest,
    ListProjectTasksRequest,
    ListTasksRequest,
    SetQueueConfigRequest,
)
from gateway.access.request import InBody, InPath, OfRequest, Path, Query
from gateway.iceberg.errors import CatalogError

#: Maximum number of runs of a task in one response.
MAX_ATTEMPTS = 1000


@dataclass(frozen=True)
class ListTasks(QuestionOperation):
    """List the tasks of a warehouse that the caller sees, the newest first."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/task/list"
    # Read-only, although the method is POST: the operation lists.
    warehouse: InPath[WarehouseRef]
    request: InBody[ListTasksRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.USE, self.warehouse),
            Demand(Can.GET_ALL_TASKS, self.warehouse, required=False),
            # Callers without this right see objects only by grants on them or on their namespaces (`Reach`).
            Demand(Can.LIST_EVERYTHING, self.warehouse, required=False),
        )


@dataclass(frozen=True)
class FoundTask:
    """A task, and the table, view or generic table that it is about; None if that does not exist any more, or never
    did.
    """

    id: UUID
    about: Kept | None


_ONE = "GET /management/v1/warehouse/{warehouse_id}/task/by-id/{task_id}"


@dataclass(frozen=True)
class FindTask(ReadOperation):
    """Find the object of the requested task. The right on that object decides."""

    endpoint: ClassVar[str] = _ONE
    warehouse: InPath[WarehouseRef]
    task_id: InPath[UUID]
    attempts: Annotated[int, Query("numAttempts", max_value=MAX_ATTEMPTS)] = 5

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.USE, self.warehouse), Demand(Can.GET_ALL_TASKS, self.warehouse, required=False))

    def facts(self) -> Facts:
        return {"task_id": str(self.task_id)}


@dataclass(frozen=True)
class GetTask(ReadOperation):
    """Return a task of a warehouse with its last runs.

    Policies decide about the object of the task, so a policy about a table binds its tasks. The caller needs the right
    on the object, or with `by_all` the right on all tasks of the warehouse, which also applies to tasks without an
    object.
    """

    endpoint: ClassVar[str] = _ONE
    warehouse: WarehouseRef
    task: FoundTask
    by_all: bool
    attempts: int = 5

    def demands(self) -> tuple[Demand, ...]:
        about = self.task.about
        of_thing = [] if about is None else [Demand(Can.GET_TASKS, about, required=not self.by_all)]
        of_all = [Demand(Can.GET_ALL_TASKS, self.warehouse)] if self.by_all or about is None else []
        return (*of_thing, Demand(Can.USE, self.warehouse), *of_all)

    def facts(self) -> Facts:
        return {"task_id": str(self.task.id)}

    def hidden(self, ref: Ref) -> CatalogError:
        """Return TaskNotFound if the object of the task is hidden; see `ControlTasks.hidden`."""
        return task_not_found(self.task.id) if ref == self.task.about else super().hidden(ref)


_CONTROL = "POST /management/v1/warehouse/{warehouse_id}/task/control"


@dataclass(frozen=True)
class FindTasks(QuestionOperation):
    """Find the objects of the tasks to control. The right on those objects decides."""

    endpoint: ClassVar[str] = _CONTROL
    returns: ClassVar[int] = 204
    # Read-only: this operation only finds the tasks. A separate operation controls the tasks.
    pause_reason: ClassVar[str] = "tasks are found to be steered, and that pauses"
    warehouse: InPath[WarehouseRef]
    request: InBody[ControlTasksRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.USE, self.warehouse),
            Demand(Can.CONTROL_ALL_TASKS, self.warehouse, required=False),
            Demand(Can.GET_ALL_TASKS, self.warehouse, required=False),
        )

    def facts(self) -> Facts:
        return _control_facts(self.request.action, self.request.task_ids)


@dataclass(frozen=True)
class ControlTasks(ChangeOperation):
    """Stop, cancel or start tasks of a warehouse: all named tasks, or none.

    Policies decide about each object separately. The caller needs the right on the object, or with `by_all` the right
    on all tasks of the warehouse, which also applies to tasks without an object.
    """

    endpoint: ClassVar[str] = _CONTROL
    event: ClassVar[EventDeclaration] = NoEvent("tasks of the gateway are no objects of the catalog")
    returns: ClassVar[int] = 204
    warehouse: WarehouseRef
    request: ControlTasksRequest
    tasks: tuple[FoundTask, ...]
    by_all: bool

    def demands(self) -> tuple[Demand, ...]:
        about = dict.fromkeys(each.about for each in self.tasks)
        of_things = [Demand(Can.CONTROL_TASKS, each, required=not self.by_all) for each in about if each is not None]
        of_all = [Demand(Can.CONTROL_ALL_TASKS, self.warehouse)] if self.by_all or None in about else []
        return (*of_things, Demand(Can.USE, self.warehouse), *of_all)

    def parts(self) -> tuple[ControlTasks, ...]:
        """Return one operation for each object, with all of the request's tasks about it."""
        about: dict[Kept | None, list[FoundTask]] = {}
        for each in self.tasks:
            about.setdefault(each.about, []).append(each)
        return tuple(replace(self, tasks=tuple(some)) for some in about.values())

    def facts(self) -> Facts:
        return _control_facts(self.request.action, [each.id for each in self.tasks])

    def hidden(self, ref: Ref) -> CatalogError:
        """Return TaskNotFound, because a caller that does not see an object must not learn its id."""
        of_it = (each.id for each in self.tasks if each.about == ref)
        return next((task_not_found(id) for id in of_it), super().hidden(ref))


@dataclass(frozen=True)
class ListProjectTasks(QuestionOperation):
    """List the tasks of a project itself, the newest first."""

    endpoint: ClassVar[str] = "POST /management/v1/project/task/list"
    # Read-only, although the method is POST: the operation lists.
    project: OfRequest
    request: InBody[ListProjectTasksRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_PROJECT_TASKS, self.project),)


@dataclass(frozen=True)
class GetProjectTask(ReadOperation):
    """Return a task that belongs to a project and to no warehouse, with its last runs."""

    endpoint: ClassVar[str] = "GET /management/v1/project/task/by-id/{task_id}"
    project: OfRequest
    task_id: InPath[UUID]
    attempts: Annotated[int, Query("numAttempts", max_value=MAX_ATTEMPTS)] = 5

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_PROJECT_TASKS, self.project),)

    def facts(self) -> Facts:
        return {"task_id": str(self.task_id)}


@dataclass(frozen=True)
class ControlProjectTasks(ChangeOperation):
    """Stop, cancel or start tasks of a project itself: all named tasks, or none."""

    endpoint: ClassVar[str] = "POST /management/v1/project/task/control"
    event: ClassVar[EventDeclaration] = NoEvent("tasks of the gateway are no objects of the catalog")
    returns: ClassVar[int] = 204
    project: OfRequest
    request: InBody[ControlTasksRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CONTROL_PROJECT_TASKS, self.project),)

    def facts(self) -> Facts:
        return _control_facts(self.request.action, self.request.task_ids)


def _control_facts(action: ControlAction, task_ids: Sequence[UUID]) -> Facts:
    return {"action": action.name, "task_ids": tuple(str(id) for id in dict.fromkeys(task_ids))}


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
    # Read-only: no queue accepts manual tasks, so the response is always an error.
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
