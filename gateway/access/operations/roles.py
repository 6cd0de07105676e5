# SPDX-License-Identifier: Apache-2.0
"""Operations on roles and their members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from uuid import UUID

from gateway.access.change_event import ChangeEvent, EventDeclaration
from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation, QuestionOperation, ReadOperation
from gateway.access.operations.grants import WritingGrants
from gateway.access.refs import ProjectRef, RoleRef
from gateway.access.relations import Can
from gateway.access.request import Body, InBody, InPath, OfRequest, PageSize, PageToken, Query, RequestProject
from gateway.access.tuples import PrincipalType
from gateway.protocol.roles import CreateRoleRequest, RoleSourceRequest, UpdateRoleRequest
from gateway.protocol.search import SearchRequest


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
    # Changes nothing: it searches.
    project: OfRequest
    text: Annotated[str, Body(SearchRequest, "search")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.SEARCH_ROLES, self.project),)


@dataclass(frozen=True)
class _OfRole:
    """Mixin of operations on one role that demand one relation on it."""

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
    """Mixin of changes of membership, which is the grant of `assignee` on the role."""

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
