# SPDX-License-Identifier: Apache-2.0
"""Project endpoints of the management API."""

from __future__ import annotations

from gateway.access.operations.projects import (
    CreateProject,
    DeleteProject,
    GetProject,
    ListProjects,
    RenameProject,
)
from gateway.access.refs import ProjectRef
from gateway.access.repetition import Remembered
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.protocol.projects import CreatedProject, CreateProjectRequest, Project, ProjectList, RenameProjectRequest


async def repeat_create(ctx: Ctx, remembered: Remembered) -> CreatedProject:
    """The project's id, to who sees the project."""
    made = ProjectRef(remembered.detail["project_id"])
    project = await ctx.parts.projects.get(await ctx.admit(GetProject(made)))
    return CreatedProject(project_id=project.project_id)


@serves(CreateProject, repeat=repeat_create)
async def create_project(ctx: Ctx) -> CreatedProject:
    """Create a project."""
    request = await ctx.body(CreateProjectRequest)
    operation = CreateProject(request.project_name, request.project_id)
    return await ctx.parts.projects.create(await ctx.admit(operation))


@serves(ListProjects)
async def list_projects(ctx: Ctx) -> ProjectList:
    """The projects the caller sees."""
    return await ctx.parts.projects.list(await ctx.admit(ListProjects()))


@serves(GetProject)
async def get_project(ctx: Ctx) -> Project:
    """The project of the request, or at an older path the one in it."""
    return await ctx.parts.projects.get(await ctx.admit(GetProject(ctx.project())))


@serves(RenameProject)
async def rename_project(ctx: Ctx) -> None:
    """Another name for the project of the request."""
    request = await ctx.body(RenameProjectRequest)
    await ctx.parts.projects.rename(await ctx.admit(RenameProject(ctx.project(), request.new_name)))


@serves(DeleteProject)
async def delete_project(ctx: Ctx) -> None:
    """Delete the project of the request."""
    await ctx.parts.projects.delete(await ctx.admit(DeleteProject(ctx.project())))
