# SPDX-License-Identifier: Apache-2.0
"""What can be asked about roles and their members (`lakekeeper.md` 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from uuid import UUID

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
    """A new role in a project; the creator owns it."""

    endpoint: ClassVar[str] = "POST /management/v1/role"
    returns: ClassVar[int] = 201
    project: Annotated[ProjectRef, RequestProject(in_body=True)]
    request: InBody[CreateRoleRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_ROLE, self.project),)

    def facts(self) -> Facts:
        return {"role_name": self.request.name, "provider_id": self.request.provider_id}


@dataclass(frozen=True)
class ListRoles(ReadOperation):
    """The roles of a project; empty filters take all."""

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
    """The roles of a project whose names are like a text, the best first."""

    endpoint: ClassVar[str] = "POST /management/v1/search/role"
    # Changes nothing: it searches.
    project: OfRequest
    text: Annotated[str, Body(SearchRequest, "search")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.SEARCH_ROLES, self.project),)


@dataclass(frozen=True)
class _OfRole:
    """Part of what is about one role and needs one relation on it."""

    needs: ClassVar[Can]
    role: InPath[RoleRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(self.needs, self.role),)


@dataclass(frozen=True)
class GetRole(_OfRole, ReadOperation):
    """One role."""

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}"
    needs: ClassVar[Can] = Can.READ


@dataclass(frozen=True)
class GetRoleMetadata(_OfRole, ReadOperation):
    """What one has to know of a role to name it: for its members too.

    The reference system tells it to everybody with a token; ours to who may read the role or is in it.
    """

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}/metadata"
    needs: ClassVar[Can] = Can.READ_METADATA


@dataclass(frozen=True)
class UpdateRole(_OfRole, ChangeOperation):
    """Another name and description."""

    endpoint: ClassVar[str] = "POST /management/v1/role/{role_id}"
    needs: ClassVar[Can] = Can.UPDATE
    request: InBody[UpdateRoleRequest]

    def facts(self) -> Facts:
        return {"role_name": self.request.name}


@dataclass(frozen=True)
class UpdateRoleSourceSystem(_OfRole, ChangeOperation):
    """Another provider and id there."""

    endpoint: ClassVar[str] = "PUT /management/v1/role/{role_id}/source-system"
    needs: ClassVar[Can] = Can.UPDATE_SOURCE_SYSTEM
    request: InBody[RoleSourceRequest]

    def facts(self) -> Facts:
        return {"provider_id": self.request.provider_id}


@dataclass(frozen=True)
class DeleteRole(_OfRole, ChangeOperation):
    """The role goes, with every grant on it and to it."""

    endpoint: ClassVar[str] = "DELETE /management/v1/role/{role_id}"
    needs: ClassVar[Can] = Can.DELETE
    returns: ClassVar[int] = 204


@dataclass(frozen=True)
class ListRoleMembers(_OfRole, ReadOperation):
    """Who was made a member of a role, users and roles; one level."""

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}/members"
    needs: ClassVar[Can] = Can.READ_ROLE_ASSIGNMENTS
    type: Annotated[PrincipalType | None, Query("type")] = None
    page_token: PageToken = None
    page_size: PageSize = None


@dataclass(frozen=True)
class _ChangingMembers(WritingGrants):
    """Membership is the grant of `assignee` on the role."""

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.MANAGE_ROLE_ASSIGNMENTS, self.on),)


@dataclass(frozen=True)
class AddRoleMembers(_ChangingMembers, ChangeOperation):
    """More members; who is one already stays one."""

    endpoint: ClassVar[str] = "POST /management/v1/role/{role_id}/members"


@dataclass(frozen=True)
class RemoveRoleMember(_ChangingMembers, ChangeOperation):
    """One member less; who is none stays none."""

    endpoint: ClassVar[str] = "DELETE /management/v1/role/{role_id}/members/{member_type}/{member_id}"


@dataclass(frozen=True)
class ListRoleMemberOf(_OfRole, ReadOperation):
    """The roles of its project that a role is a member of; one level."""

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}/member-of"
    needs: ClassVar[Can] = Can.READ


@dataclass(frozen=True)
class ListAllRoleMembers(_OfRole, ReadOperation):
    """Everybody who is in a role, also through other roles and by owning one."""

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}/members/transitive"
    needs: ClassVar[Can] = Can.READ_ROLE_ASSIGNMENTS
    type: Annotated[PrincipalType | None, Query("type")] = None
    page_token: PageToken = None
    page_size: PageSize = None


@dataclass(frozen=True)
class ListAllRoleMemberOf(_OfRole, ReadOperation):
    """The roles of its project that a role is in, also through other roles and by owning one."""

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}/member-of/transitive"
    needs: ClassVar[Can] = Can.READ


ChangeRoleMembers = AddRoleMembers | RemoveRoleMember
