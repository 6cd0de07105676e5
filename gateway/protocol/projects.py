# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints for projects."""

from __future__ import annotations

from gateway.protocol.base import Answer, Name, ProjectId, Request


class CreateProjectRequest(Request, frozen=True):
    """Request of `POST /project`."""

    project_name: Name
    project_id: ProjectId | None = None


class CreatedProject(Answer, frozen=True):
    """Response of `POST /project`."""

    project_id: str


class RenameProjectRequest(Request, frozen=True):
    """Request of `POST /project/rename`."""

    new_name: Name


class Project(Answer, frozen=True):
    """A project."""

    project_id: str
    project_name: str


class ProjectList(Answer, frozen=True):
    """Response of `GET /project-list`."""

    projects: list[Project]
