# SPDX-License-Identifier: Apache-2.0
"""Operations on projects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.bodies import Answer, Name, ProjectId, Request
from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.relations import Can
from gateway.access.nouns.server import ServerRef
from gateway.access.operation import Audience, ChangeOperation, PublicAudience, ReadOperation
from gateway.access.request import Body, OfRequest


@dataclass(frozen=True)
class CreateProject(ChangeOperation):
    """Create a project. The creator administers it."""

    endpoint: ClassVar[str] = "POST /management/v1/project"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="", new="project_id", named="project_name")
    returns: ClassVar[int] = 201
    project_name: Annotated[str, Body(CreateProjectRequest, "project_name")]
    project_id: Annotated[str | None, Body(CreateProjectRequest, "project_id")] = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_PROJECT, ServerRef()),)

    def facts(self) -> Facts:
        return {"project_name": self.project_name}


@dataclass(frozen=True)
class ListProjects(ReadOperation):
    """List the projects that the caller sees."""

    endpoint: ClassVar[str] = "GET /management/v1/project-list"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.AUTHENTICATED,
        "each row is filtered by can_include_in_list; a caller without visible projects gets an empty list",
    )


@dataclass(frozen=True)
class GetProject(ReadOperation):
    """Return a project."""

    endpoint: ClassVar[str] = "GET /management/v1/project"
    also_at: ClassVar[tuple[str, ...]] = ("/management/v1/project/{project_id}", "/management/v1/default-project")
    project: OfRequest

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.project),)


@dataclass(frozen=True)
class RenameProject(ChangeOperation):
    """Rename a project. Its id and all rights stay."""

    endpoint: ClassVar[str] = "POST /management/v1/project/rename"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="project")
    also_at: ClassVar[tuple[str, ...]] = (
        "/management/v1/project/{project_id}/rename",
        "/management/v1/default-project/rename",
    )
    project: OfRequest
    new_name: Annotated[str, Body(RenameProjectRequest, "new_name")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.RENAME, self.project),)

    def facts(self) -> Facts:
        return {"new_name": self.new_name}


@dataclass(frozen=True)
class DeleteProject(ChangeOperation):
    """Delete an empty project with every grant on it."""

    endpoint: ClassVar[str] = "DELETE /management/v1/project"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="project")
    also_at: ClassVar[tuple[str, ...]] = ("/management/v1/project/{project_id}", "/management/v1/default-project")
    returns: ClassVar[int] = 204
    project: OfRequest

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.DELETE, self.project),)


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
