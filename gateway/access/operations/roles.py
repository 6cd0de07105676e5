# SPDX-License-Identifier: Apache-2.0
"""Operations on roles and their members."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar, Literal
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, Name, ProjectId, Request, StrictRequest
from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.role import RoleRef
from gateway.access.operation import ChangeOperation, QuestionOperation, ReadOperation
from gateway.access.operations.grants import WritingGrants
from gateway.access.operations.search import SearchRequest
from gateway.access.request import Body, InBody, InPath, OfRequest, PageSize, PageToken, Query, RequestProject
from gateway.access.tuples import PrincipalType


@dataclass(frozen=True)
class CreateRole(ChangeOperation):
    """Create a role in a project. The creator owns it."""

    endpoint: ClassVar[str] = "POST /management/v1/role"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="project", new="role_id", named="request.name")
    returns: ClassVar[int] = 201
    project: Annotated[ProjectRef, RequestProject(in_body=True)]
    request: InBody[CreateRoleRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_ROLE, self.project),)

    def facts(self) -> Facts:
        return {"role_name": self.request.name, "provider_id": self.request.provider_id}


@dataclass(frozen=True)
class ListRoles(ReadOperation):
    """List the roles of a project. Empty filters match all."""

    endpoint: ClassVar[str] = "GET /management/v1/role"
    project: OfRequest
    ids: Annotated[tuple[UUID, ...], Query("roleIds")] = ()
    source_ids: Annotated[tuple[str, ...], Query("sourceIds")] = ()
    provider_ids: Annotated[tuple[str, ...], Query("providerIds")] = ()
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_ROLES, self.project),)


@dataclass(frozen=True)
class SearchRole(QuestionOperation):
    """Search the roles of a project by name, the best match first."""

    endpoint: ClassVar[str] = "POST /management/v1/search/role"
    # Read-only, although the method is POST: the operation searches.
    project: OfRequest
    text: Annotated[str, Body(SearchRequest, "search")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.SEARCH_ROLES, self.project),)


@dataclass(frozen=True)
class _OfRole:
    """Mixin of operations on one role that demand one relation to it."""

    needs: ClassVar[Can]
    role: InPath[RoleRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(self.needs, self.role),)


@dataclass(frozen=True)
class GetRole(_OfRole, ReadOperation):
    """Return a role."""

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}"
    needs: ClassVar[Can] = Can.READ


@dataclass(frozen=True)
class GetRoleMetadata(_OfRole, ReadOperation):
    """Return the names and ids of a role, also to its members.

    Lakekeeper returns them to every token. Here the caller must be able to read the role, or be a member of it.
    """

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}/metadata"
    needs: ClassVar[Can] = Can.READ_METADATA


@dataclass(frozen=True)
class UpdateRole(_OfRole, ChangeOperation):
    """Change the name and description of a role."""

    endpoint: ClassVar[str] = "POST /management/v1/role/{role_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="role")
    needs: ClassVar[Can] = Can.UPDATE
    request: InBody[UpdateRoleRequest]

    def facts(self) -> Facts:
        return {"role_name": self.request.name}


@dataclass(frozen=True)
class UpdateRoleSourceSystem(_OfRole, ChangeOperation):
    """Change the provider of a role and its id there."""

    endpoint: ClassVar[str] = "PUT /management/v1/role/{role_id}/source-system"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="role")
    needs: ClassVar[Can] = Can.UPDATE_SOURCE_SYSTEM
    request: InBody[RoleSourceRequest]

    def facts(self) -> Facts:
        return {"provider_id": self.request.provider_id}


@dataclass(frozen=True)
class DeleteRole(_OfRole, ChangeOperation):
    """Delete a role with every grant on it and to it."""

    endpoint: ClassVar[str] = "DELETE /management/v1/role/{role_id}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="role")
    needs: ClassVar[Can] = Can.DELETE
    returns: ClassVar[int] = 204


@dataclass(frozen=True)
class ListRoleMembers(_OfRole, ReadOperation):
    """List the direct members of a role, users and roles."""

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}/members"
    needs: ClassVar[Can] = Can.READ_ROLE_ASSIGNMENTS
    type: Annotated[PrincipalType | None, Query("type")] = None
    page_token: PageToken = None
    page_size: PageSize = None


@dataclass(frozen=True)
class _ChangingMembers(WritingGrants):
    """Mixin of changes of a role's members. A membership is a grant of `assignee` on the role."""

    event: ClassVar[EventDeclaration] = ChangeEvent(on="on", type="changeRoleMembers")

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.MANAGE_ROLE_ASSIGNMENTS, self.on),)


@dataclass(frozen=True)
class AddRoleMembers(_ChangingMembers, ChangeOperation):
    """Add members to a role. Existing members stay."""

    endpoint: ClassVar[str] = "POST /management/v1/role/{role_id}/members"


@dataclass(frozen=True)
class RemoveRoleMember(_ChangingMembers, ChangeOperation):
    """Remove a member from a role. Nothing changes if the principal is no member."""

    endpoint: ClassVar[str] = "DELETE /management/v1/role/{role_id}/members/{member_type}/{member_id}"


@dataclass(frozen=True)
class ListRoleMemberOf(_OfRole, ReadOperation):
    """List the roles of its project that a role is a direct member of."""

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}/member-of"
    needs: ClassVar[Can] = Can.READ
    page_token: PageToken = None
    page_size: PageSize = None


@dataclass(frozen=True)
class ListAllRoleMembers(_OfRole, ReadOperation):
    """List all members of a role, also through other roles and by owning one."""

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}/members/transitive"
    needs: ClassVar[Can] = Can.READ_ROLE_ASSIGNMENTS
    type: Annotated[PrincipalType | None, Query("type")] = None
    page_token: PageToken = None
    page_size: PageSize = None


@dataclass(frozen=True)
class ListAllRoleMemberOf(_OfRole, ReadOperation):
    """List the roles of its project that a role is in, also through other roles and by owning one."""

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}/member-of/transitive"
    needs: ClassVar[Can] = Can.READ
    page_token: PageToken = None
    page_size: PageSize = None


ChangeRoleMembers = AddRoleMembers | RemoveRoleMember


#: The provider of roles whose members this server manages.
OWN_PROVIDER = "lakekeeper"

#: The provider of the catalog's built-in roles. No caller may create such a role.
SYSTEM_PROVIDER = "system"

#: `(?![\s\S])` precedes `$`, because `$` alone accepts a trailing line feed in Python's `re`.
ProviderId = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[a-z0-9-]+(?![\s\S])$")]

SourceId = Annotated[str, msgspec.Meta(min_length=1, max_length=512, pattern=r"^[^\x00-\x1f\x7f]+(?![\s\S])$")]

Description = Annotated[str, msgspec.Meta(max_length=4096, pattern=r"^[^\x00]*(?![\s\S])$")]


class CreateRoleRequest(Request, frozen=True):
    """Request of `POST /role`. Without a `source-id`, the id of the role is also its source id."""

    name: Name
    description: Description | None = None
    provider_id: ProviderId = OWN_PROVIDER
    source_id: SourceId | None = None
    project_id: ProjectId | None = None


class UpdateRoleRequest(Request, frozen=True):
    """Request of `POST /role/{id}`. Without a `description`, the existing description is removed."""

    name: Name
    description: Description | None = None


class RoleSourceRequest(StrictRequest, frozen=True):
    """Request of `PUT /role/{id}/source-system`."""

    provider_id: ProviderId
    source_id: SourceId


class Role(Answer, frozen=True, omit_defaults=True):
    """A role. `ident` is `<provider>~<source>`."""

    id: UUID
    ident: str
    name: str
    project_id: str
    provider_id: str
    source_id: str
    created_at: datetime
    description: str | None = None
    updated_at: datetime | None = None


class RoleMetadata(Answer, frozen=True):
    """Response of `GET /role/{id}/metadata`."""

    id: UUID
    ident: str
    name: str
    project_id: str
    provider_id: str
    source_id: str


class RoleList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /role` and `POST /search/role`."""

    roles: list[Role]
    next_page_token: str | None = None


class NamedRole(Answer, frozen=True):
    """A role that has a user or another role as a member."""

    id: UUID
    ident: str
    name: str


class NamedRoleList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /role/{id}/member-of` and `GET /user/{id}/roles`, by name. The second has pages only if the
    request has `pageSize` or `pageToken`.
    """

    roles: list[NamedRole]
    next_page_token: str | None = None


class RoleMember(StrictRequest, frozen=True):
    """A member: a user by `<provider>~<subject>`, a role by its UUID."""

    type: Literal["user", "role"]
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class RoleMembersRequest(StrictRequest, frozen=True):
    """Request of `POST /role/{id}/members`."""

    members: Annotated[tuple[RoleMember, ...], msgspec.Meta(max_length=100)]


class DescribedMember(Answer, frozen=True, omit_defaults=True):
    """A member. A user has a name, a type and, if it is verified, an address, unless its record is deleted. A role of
    the same project has a name and its `ident`.
    """

    type: str
    id: str
    name: str | None = None
    email: str | None = None
    user_type: str | None = None
    ident: str | None = None


class RoleMemberList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /role/{id}/members`."""

    members: list[DescribedMember]
    next_page_token: str | None = None
