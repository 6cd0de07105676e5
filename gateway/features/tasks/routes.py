# SPDX-License-Identifier: Apache-2.0
"""Endpoints for background tasks and their queues."""

from __future__ import annotations

from gateway.access.operations.task_bodies import ScheduledTask, ScheduleTaskRequest, WarehouseTaskDetails
from gateway.access.operations.task_control import (
    ControlProjectTasks,
    ControlTasks,
    FindTask,
    FindTasks,
    GetProjectTask,
    GetQueueConfig,
    GetTask,
    GetTaskLogCleanupConfig,
    ListProjectTasks,
    ListTasks,
    ScheduleTask,
    SetQueueConfig,
    SetTaskLogCleanupConfig,
)
from gateway.access.request import Body
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.features.tasks.task_queues import TaskQueues
from gateway.features.tasks.tasks import Tasks


@serves(GetTask, FindTask)
async def get_task(ctx: Ctx) -> WarehouseTaskDetails:
    """Find a task, then return it if the caller may read tasks of its object or all tasks of the warehouse."""
    found = await ctx.use(Tasks).find_one(await ctx.admit(await ctx.read(FindTask)))
    return await ctx.use(Tasks).get(await ctx.admit(found))


@serves(ControlTasks, FindTasks)
async def control_tasks(ctx: Ctx) -> None:
    """Find tasks, and stop, cancel or start them."""
    found = await ctx.use(Tasks).find(await ctx.admit(await ctx.read(FindTasks)))
    await ctx.use(Tasks).control(await ctx.admit(found))


@serves(ScheduleTask, reads=(Body(ScheduleTaskRequest),))
async def schedule_task(ctx: Ctx) -> ScheduledTask:
    """Reject the request: clients cannot schedule tasks."""
    await ctx.body(ScheduleTaskRequest)
    return await ctx.use(TaskQueues).schedule(await ctx.admit(await ctx.read(ScheduleTask)))


serve(ListTasks, Tasks.list)
serve(ListProjectTasks, Tasks.list_of_project)
serve(GetProjectTask, Tasks.get_of_project)
serve(ControlProjectTasks, Tasks.control_of_project)
serve(GetQueueConfig, TaskQueues.get)
serve(SetQueueConfig, TaskQueues.set)
serve(GetTaskLogCleanupConfig, TaskQueues.get_cleanup)
serve(SetTaskLogCleanupConfig, TaskQueues.set_cleanup)
