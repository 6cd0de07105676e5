# SPDX-License-Identifier: Apache-2.0
"""Project endpoints of the management API."""

from __future__ import annotations

from gateway.access.idempotency import RecordedSuccess
from gateway.access.operations.projects import CreateProject, DeleteProject, GetProject, ListProjects, RenameProject
from gateway.access.refs import ProjectRef
from gateway.api.context import Ctx
from gateway.api.serves import serve
from gateway.governance.projects import Projects
from gateway.protocol.projects import CreatedProject


async def replay_create(ctx: Ctx, recorded_success: RecordedSuccess) -> CreatedProject:
    """Return the project's id. Raises 404 if the caller cannot see the project."""
    created = ProjectRef(recorded_success.detail["project_id"])
    project = await ctx.services.projects.get(await ctx.admit(GetProject(created)))
    return CreatedProject(project_id=project.project_id)


serve(CreateProject, Projects.create, replay=replay_create)
serve(ListProjects, Projects.list)
serve(GetProject, Projects.get)
serve(RenameProject, Projects.rename)
serve(DeleteProject, Projects.delete)
