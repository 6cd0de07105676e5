# SPDX-License-Identifier: Apache-2.0
"""Use cases of background tasks for API clients: list, read, stop, cancel and reschedule them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

import msgspec

from gateway.access.door.list_visibility import Holders, all_by_grants, holders_of
from gateway.access.door.pending_audit import PendingAudit
from gateway.access.door.permit import Permit
from gateway.access.management_errors import TaskAlreadyActive, TaskStateConflict
from gateway.access.nouns.authz_errors import task_not_found
from gateway.access.nouns.refs import UNUSED_ID, ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.operation import Operation
from gateway.access.operations.task_bodies import (
    Cancel,
    ControlTasksRequest,
    ListProjectTasksRequest,
    ProjectTaskDetails,
    ProjectTaskList,
    RunAt,
    RunNow,
    Stop,
    TaskAttempt,
    TaskList,
    WarehouseTaskDetails,
)
from gateway.access.operations.task_control import (
    ControlProjectTasks,
    ControlTasks,
    FindTask,
    FindTasks,
    FoundTask,
    GetProjectTask,
    GetTask,
    ListProjectTasks,
    ListTasks,
)
from gateway.db.engine.database import Connection, Database
from gateway.db.tasks import task_lists
from gateway.db.tasks.task_lists import AlreadyActive, TaskFilter, TaskRow
from gateway.db.tasks.tasks import Status
from gateway.features.kit import UseCases
from gateway.features.paging import FETCH, place_of, unpacked, visible_page
from gateway.features.tasks.task_texts import (
    STATUSES,
    attempt_answers,
    entity_of,
    entity_ref,
    filter_of,
    project_task,
    warehouse_task,
)
from gateway.iceberg.errors import BadRequestException

LONGEST_DELAY: Final = timedelta(days=365)
"""Longest delay that a client may give a task."""

AGAIN_IN_SECONDS: Final = 60.0
"""Delay before a stopped task starts again, unless a client reschedules or cancels it first."""

_ROWS_AT_ONCE: Final = 1000
_BY_DEFAULT: Final = 100


class Tasks(UseCases):
    """List, read and control the tasks of warehouses and projects."""

    async def list(self, permit: Permit[ListTasks]) -> TaskList:
        """Return the tasks of a warehouse that the caller may see.

        A caller with `can_get_all_tasks` sees all of them. Other callers see tasks of tables and views on which they
        hold `can_get_tasks`. Rows are read until the page is full of visible tasks. Raises DecisionUnavailable during
        an outage.
        """
        operation = permit.operation
        warehouse = permit.warehouse(operation.warehouse)
        all_seen = permit.holds(Can.GET_ALL_TASKS, operation.warehouse)
        filter = _task_filter(operation.request, warehouse_id=warehouse.id)
        if operation.request.entities is not None:
            entities = tuple(filter_of(each, warehouse.id) for each in operation.request.entities)
            filter = replace(filter, entities=entities)
        if not all_seen:
            filter = replace(filter, of_existing_only=True, holders=await self._holders(permit))
        rows, token = await self._page(permit, operation.request, filter, None if all_seen else Can.GET_TASKS)
        return TaskList(
            tasks=[warehouse_task(row, warehouse) for row in rows],
            next_page_token=token,
        )

    async def list_of_project(self, permit: Permit[ListProjectTasks]) -> ProjectTaskList:
        """Return the project's own tasks."""
        operation = permit.operation
        filter = _task_filter(operation.request, project_id=operation.project.project_id)
        rows, token = await self._page(permit, operation.request, filter, None)
        return ProjectTaskList(
            tasks=[project_task(row, operation.project.project_id) for row in rows], next_page_token=token
        )

    async def find_one(self, permit: Permit[FindTask]) -> GetTask:
        """Find a task. Return the operation that reads it, which the door decides next. Raises TaskNotFound as `find`
        does.
        """
        operation = permit.operation
        by_all = permit.holds(Can.GET_ALL_TASKS, operation.warehouse)
        ids = [operation.task_id]
        async with self._database.read() as connection:
            found = await task_lists.get(connection, ids, warehouse_id=operation.warehouse.warehouse_id)
            there = await task_lists.existing(connection, [row.entity_id for row in found.values()])
        if not by_all:
            [seen] = await self._related(permit, Can.GET_TASKS, ids, found)
            found = found if seen else {}
        row = _one(found, operation.task_id)
        about = entity_ref(row) if row.entity_id in there else None
        return GetTask(operation.warehouse, FoundTask(row.id, about), by_all, operation.attempts)

    async def get(self, permit: Permit[GetTask]) -> WarehouseTaskDetails:
        """Return one task with its attempts. Raises TaskNotFound if it was deleted meanwhile."""
        operation = permit.operation
        warehouse = permit.warehouse(operation.warehouse)
        async with self._database.read() as connection:
            found = await task_lists.get(connection, [operation.task.id], warehouse_id=warehouse.id)
        row = _one(found, operation.task.id)
        task = warehouse_task(row, warehouse)
        return WarehouseTaskDetails(
            **msgspec.structs.asdict(task),
            task_data=row.payload,
            execution_details=row.execution_details,
            message=row.last_error,
            attempts=await _attempts(self._database, row.id, operation.attempts),
        )

    async def get_of_project(self, permit: Permit[GetProjectTask]) -> ProjectTaskDetails:
        """Return one task of the project with its attempts. Raises TaskNotFound."""
        operation = permit.operation
        async with self._database.read() as connection:
            found = await task_lists.get(connection, [operation.task_id], project_id=operation.project.project_id)
        row = _one(found, operation.task_id)
        return ProjectTaskDetails(
            **msgspec.structs.asdict(project_task(row, operation.project.project_id)),
            task_data=row.payload,
            execution_details=row.execution_details,
            message=row.last_error,
            attempts=await _attempts(self._database, row.id, operation.attempts),
        )

    async def find(self, permit: Permit[FindTasks]) -> ControlTasks:
        """Find tasks. Return the operation that controls them, which the door decides next.

        Raises TaskNotFound for a task that does not exist or that the caller may not see, so that the response does not
        reveal its object.
        """
        operation = permit.operation
        warehouse = operation.warehouse
        ids = list(dict.fromkeys(operation.request.task_ids))
        async with self._database.read() as connection:
            found = await task_lists.get(connection, ids, warehouse_id=warehouse.warehouse_id)
            there = await task_lists.existing(connection, [row.entity_id for row in found.values()])
        by_all = permit.holds(Can.CONTROL_ALL_TASKS, warehouse)
        if by_all or permit.holds(Can.GET_ALL_TASKS, warehouse):
            seen: Sequence[bool] = [id in found for id in ids]
        else:
            seen = await self._related(permit, Can.CONTROL_TASKS, ids, found)
            if not all(seen):
                seen = await self._related(permit, Can.GET_TASKS, ids, found)
        for id, yes in zip(ids, seen, strict=True):
            if not yes:
                raise task_not_found(id)
        about = {id: entity_ref(found[id]) if found[id].entity_id in there else None for id in ids}
        return ControlTasks(warehouse, operation.request, tuple(FoundTask(id, about[id]) for id in ids), by_all)

    async def control(self, permit: Permit[ControlTasks]) -> None:
        """Apply the action to all of the tasks or, if it fails for one, to none.

        Raises TaskNotFound for a task that was deleted meanwhile. Raises TaskStateConflict if the action does not fit
        the state of a task. Raises TaskAlreadyActive.
        """
        operation = permit.operation
        ids = [each.id for each in operation.tasks]
        _add_control_details(permit.pending_audit, operation.request)
        async with self._database.change(permit) as connection:
            found = await task_lists.hold(connection, ids, warehouse_id=operation.warehouse.warehouse_id)
            await _act(connection, operation.request, ids, found)

    async def control_of_project(self, permit: Permit[ControlProjectTasks]) -> None:
        """Apply the action to tasks of the project as `control` does. One right covers all of them."""
        operation = permit.operation
        ids = list(dict.fromkeys(operation.request.task_ids))
        _add_control_details(permit.pending_audit, operation.request)
        async with self._database.change(permit) as connection:
            found = await task_lists.hold(connection, ids, project_id=operation.project.project_id)
            await _act(connection, operation.request, ids, found)

    async def _page(
        self,
        permit: Permit[ListTasks] | Permit[ListProjectTasks],
        request: ListProjectTasksRequest,
        filter: TaskFilter,
        relation: Can | None,
    ) -> tuple[Sequence[TaskRow], str | None]:
        """Return (rows, token of the next page or None).

        The rows are the tasks on whose object the caller has `relation`, or all tasks if it is None.
        """

        async def fetch(after: tuple[datetime, UUID] | None, limit: int) -> Sequence[TaskRow]:
            return await self._reads.run(partial(task_lists.page, filter=filter, after=after, limit=limit))

        async def is_seen(rows: Sequence[TaskRow]) -> Sequence[bool]:
            if relation is None:
                return [True] * len(rows)
            return await self._related(permit, relation, [row.id for row in rows], {row.id: row for row in rows})

        return await visible_page(
            fetch,
            is_seen,
            lambda row: (row.created_at, row.id),
            after=place_of(request.page_token, _place),
            page_size=min(request.page_size or _BY_DEFAULT, self._page_size),
            later_reads=FETCH,
        )

    async def _holders(self, permit: Permit[ListTasks]) -> Holders | None:
        """Return the principals whose grants can make tasks visible to the caller.

        Return None if tasks can be visible without a grant too, so that each row needs a check.
        """
        if permit.holds(Can.LIST_EVERYTHING, permit.operation.warehouse):
            return None
        by_grants = await all_by_grants(self._reaches, tasks=True)
        return holders_of(permit.actor, permit.resolution) if by_grants else None

    async def _related(
        self, permit: Permit[Operation], relation: Can, ids: Sequence[UUID], found: Mapping[UUID, TaskRow]
    ) -> Sequence[bool]:
        """Return for each task whether the caller has `relation` on its object.

        Absent tasks get the same check as present ones, so timing does not reveal them.
        """
        keys = [_entity_key(found.get(id)) for id in ids]
        distinct = list(dict.fromkeys(keys))
        answers = dict(zip(distinct, await self._door.visible(permit, relation, distinct), strict=True))
        return [id in found and answers[key] for id, key in zip(ids, keys, strict=True)]


async def _attempts(database: Database, id: UUID, limit: int) -> list[TaskAttempt]:
    async with database.read() as connection:
        return attempt_answers(await task_lists.attempts(connection, id, limit=limit))


def _add_control_details(pending_audit: PendingAudit, request: ControlTasksRequest) -> None:
    pending_audit.add_details(
        action=request.action.name, task_ids=" ".join(str(id) for id in dict.fromkeys(request.task_ids))
    )


async def _act(
    connection: Connection, request: ControlTasksRequest, ids: Sequence[UUID], found: Mapping[UUID, TaskRow]
) -> None:
    for id in ids:
        if id not in found:
            raise task_not_found(id)
    match request.action:
        case Stop():
            _require(found, "stopped", {Status.RUNNING, Status.STOPPING}, "is not running")
            await task_lists.stop(connection, ids, again_in=AGAIN_IN_SECONDS)
        case Cancel():
            _require(found, "cancelled", {Status.SCHEDULED, Status.CANCELLED}, "is running or has ended")
            await task_lists.cancel(connection, ids, reason="cancelled by request")
        case RunNow() | RunAt() as run:
            at = None if isinstance(run, RunNow) else _require_within_a_year(run.scheduled_for)
            fits = {Status.SCHEDULED, Status.STOPPING, Status.FAILED}
            _require(found, "scheduled", fits, "is running, succeeded or was cancelled")
            try:
                await task_lists.reschedule(connection, ids, at=at)
            except AlreadyActive as clash:
                raise TaskAlreadyActive(
                    "Another task of the queue is active for the same table or view. Wait until it ends, or cancel it."
                ) from clash


def _require(found: Mapping[UUID, TaskRow], target_state: str, fits: set[Status], otherwise: str) -> None:
    wrong = [f"{row.id} is {STATUSES[Status(row.status)]}" for row in found.values() if Status(row.status) not in fits]
    if wrong:
        raise TaskStateConflict(
            f"No task was {target_state}: a task that {otherwise} cannot be {target_state}. The details list "
            "the tasks concerned.",
            detail=tuple(sorted(wrong)),
        )


def _require_within_a_year(at: datetime) -> datetime:
    at = _utc(at)
    if at > datetime.now(UTC) + LONGEST_DELAY:
        raise BadRequestException(f"scheduled-for must be at most {LONGEST_DELAY.days} days from now.")
    return at


def _utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise BadRequestException(
            f"The time {moment.isoformat()}, converted to UTC, must be in the years 1 to 9999."
        ) from None


def _task_filter(
    request: ListProjectTasksRequest, *, warehouse_id: UUID | None = None, project_id: str | None = None
) -> TaskFilter:
    names = request.queue_name
    return TaskFilter(
        warehouse_id=warehouse_id,
        project_id=project_id,
        queues=None if names is None else tuple(_queue_name(name) for name in names),
        statuses=(
            None
            if request.status is None
            else tuple(status for status, label in STATUSES.items() if label in request.status)
        ),
        created_after=None if request.created_after is None else _utc(request.created_after),
        created_before=None if request.created_before is None else _utc(request.created_before),
    )


def _queue_name(name: str) -> str:
    """Return the canonical name of a queue. An unknown name is returned unchanged; no task has it."""
    queue = task_lists.named_queue(name)
    return name if queue is None else queue.value


def _entity_key(row: TaskRow | None) -> ObjectKey:
    entity = None if row is None else entity_of(row)
    return ObjectKey(ObjectType.TABLE, UNUSED_ID) if entity is None else entity.key


def _one(found: Mapping[UUID, TaskRow], id: UUID) -> TaskRow:
    if id not in found:
        raise task_not_found(id)
    return found[id]


def _place(token: str) -> tuple[datetime, UUID]:
    created_at, id = unpacked(token, tuple[datetime, UUID])
    return created_at.astimezone(UTC), id
