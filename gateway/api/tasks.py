# SPDX-License-Identifier: Apache-2.0
"""Endpoints of background tasks and their queues."""

from __future__ import annotations

from gateway.access.operations.task_control import (
    ControlProjectTasks,
    ControlTasks,
    FindTask,
    FindTasks,
    GetProjectTask,
    GetTask,
    ListProjectTasks,
    ListTasks,
)
from gateway.access.operations.task_queues import (
    GetQueueConfig,
    GetTaskLogCleanupConfig,
    ScheduleTask,
    SetQueueConfig,
    SetTaskLogCleanupConfig,
)
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.iceberg.errors import BadRequestException
from gateway.protocol.tasks import (
    ControlTasksRequest,
    ListProjectTasksRequest,
    ListTasksRequest,
    ProjectTaskDetails,
    ProjectTaskList,
    QueueConfig,
    ScheduledTask,
    ScheduleTaskRequest,
    SetQueueConfigRequest,
    TaskList,
    WarehouseTaskDetails,
)

_ATTEMPTS = 5
_MOST_ATTEMPTS = 1000


@serves(ListTasks)
async def list_tasks(ctx: Ctx) -> TaskList:
    """The warehouse's tasks, by page."""
    request = await ctx.body(ListTasksRequest)
    return await ctx.parts.tasks.list(await ctx.admit(ListTasks(targets.warehouse(ctx), request)))


@serves(GetTask, FindTask)
async def get_task(ctx: Ctx) -> WarehouseTaskDetails:
    """One task."""
    asked = FindTask(targets.warehouse(ctx), ctx.uuid("task_id"), _attempts(ctx))
    found = await ctx.parts.tasks.find_one(await ctx.admit(asked))
    return await ctx.parts.tasks.get(await ctx.admit(found))


@serves(ControlTasks, FindTasks)
async def control_tasks(ctx: Ctx) -> None:
    """Stop, cancel or begin tasks."""
    request = await ctx.body(ControlTasksRequest)
    found = await ctx.parts.tasks.find(await ctx.admit(FindTasks(targets.warehouse(ctx), request)))
    await ctx.parts.tasks.control(await ctx.admit(found))


@serves(ListProjectTasks)
async def list_project_tasks(ctx: Ctx) -> ProjectTaskList:
    """The project's own tasks, by page."""
    request = await ctx.body(ListProjectTasksRequest)
    return await ctx.parts.tasks.list_of_project(await ctx.admit(ListProjectTasks(ctx.project(), request)))


@serves(GetProjectTask)
async def get_project_task(ctx: Ctx) -> ProjectTaskDetails:
    """One of the project's own tasks."""
    operation = GetProjectTask(ctx.project(), ctx.uuid("task_id"), _attempts(ctx))
    return await ctx.parts.tasks.get_of_project(await ctx.admit(operation))


@serves(ControlProjectTasks)
async def control_project_tasks(ctx: Ctx) -> None:
    """Stop, cancel or begin the project's own tasks."""
    request = await ctx.body(ControlTasksRequest)
    await ctx.parts.tasks.control_of_project(await ctx.admit(ControlProjectTasks(ctx.project(), request)))


@serves(GetQueueConfig)
async def get_queue_config(ctx: Ctx, queue_name: str) -> QueueConfig:
    """A queue's configuration."""
    operation = GetQueueConfig(targets.warehouse(ctx), queue_name)
    return await ctx.parts.task_queues.get(await ctx.admit(operation))


@serves(SetQueueConfig)
async def set_queue_config(ctx: Ctx, queue_name: str) -> None:
    """Another configuration of a queue."""
    request = await ctx.body(SetQueueConfigRequest)
    await ctx.parts.task_queues.set(await ctx.admit(SetQueueConfig(targets.warehouse(ctx), queue_name, request)))


@serves(ScheduleTask)
async def schedule_task(ctx: Ctx, queue_name: str) -> ScheduledTask:
    """A task by hand: refused."""
    await ctx.body(ScheduleTaskRequest)
    return await ctx.parts.task_queues.schedule(await ctx.admit(ScheduleTask(targets.warehouse(ctx), queue_name)))


@serves(GetTaskLogCleanupConfig)
async def get_task_log_cleanup_config(ctx: Ctx) -> QueueConfig:
    """How the project forgets its ended tasks."""
    return await ctx.parts.task_queues.get_cleanup(await ctx.admit(GetTaskLogCleanupConfig(ctx.project())))


@serves(SetTaskLogCleanupConfig)
async def set_task_log_cleanup_config(ctx: Ctx) -> None:
    """How the project is to forget its ended tasks."""
    request = await ctx.body(SetQueueConfigRequest)
    await ctx.parts.task_queues.set_cleanup(await ctx.admit(SetTaskLogCleanupConfig(ctx.project(), request)))


def _attempts(ctx: Ctx) -> int:
    given = ctx.query("numAttempts")
    if given is None:
        return _ATTEMPTS
    if not given.isascii() or not given.isdigit() or len(given) > 5:
        raise BadRequestException(f"numAttempts is a number up to 65535, not {given[:20]!r}.")
    return min(int(given), _MOST_ATTEMPTS)
