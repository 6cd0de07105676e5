# SPDX-License-Identifier: Apache-2.0
"""What can be asked of the grants API (`lakekeeper.md` 3.7): grants with who gave them, when, why and until when.

It demands what the assignments API demands (`grants.py`); writing is idempotent here. Roles are an addition of ours,
and so are the history and the list of all that one principal holds, which the reference system answers with 501.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from gateway.access.demand import Demand, Facts
from gateway.access.operation import Operation
from gateway.access.operations.grants import ReadingGrants, WritingGrants
from gateway.access.refs import ProjectRef, Ref, RoleRef, ServerRef
from gateway.access.relations import VISIBLE_BY, Can
from gateway.access.tuples import Principal, PrincipalType


@dataclass(frozen=True)
class Paged:
    """Part of operations that answer by page: where to go on and how many at most (None for the largest page)."""

    page_token: str | None = None
    page_size: int | None = None


@dataclass(frozen=True)
class ListingGrants(Paged, ReadingGrants):
    """Part of operations that list grants, live or ended."""


@dataclass(frozen=True)
class ListingPrivileges:
    """Part of operations that tell which privileges the caller may give on an object: for who sees it or manages its
    grants.
    """

    on: Ref

    def demands(self) -> tuple[Demand, ...]:
        visible_by = VISIBLE_BY.get(self.on.type)
        if visible_by is None:
            return (Demand(Can.READ_ASSIGNMENTS, self.on),)
        return (Demand(visible_by, self.on, alternative=Can.READ_ASSIGNMENTS),)


@dataclass(frozen=True)
class ListPrincipalGrants(Operation):
    """Everything one principal (the caller when None) holds in a project and on the server.

    Of oneself everybody asks. What a user holds in the project is told to who may read its assignments, and on the
    server to who may read those; what a role holds also to its members: it is theirs.
    """

    endpoint: ClassVar[str] = "GET /management/v1/grants"
    open_to_self: ClassVar[str] = "about oneself; asking about others demands can_read_assignments"
    project: ProjectRef
    principal: Principal | None = None
    page_token: str | None = None
    page_size: int | None = None

    def demands(self) -> tuple[Demand, ...]:
        if self.principal is None:
            return ()
        if self.principal.type is PrincipalType.ROLE:
            return (Demand(Can.ASSUME, RoleRef(UUID(self.principal.id)), alternative=Can.READ_ASSIGNMENTS),)
        return (
            Demand(Can.READ_ASSIGNMENTS, self.project),
            Demand(Can.READ_ASSIGNMENTS, ServerRef(), required=False),
        )

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.project,)

    def facts(self) -> Facts:
        return {"about": "" if self.principal is None else f"{self.principal.type}:{self.principal.id}"}


@dataclass(frozen=True)
class ListServerGrants(ListingGrants, Operation):
    """The live grants on the server."""

    endpoint: ClassVar[str] = "GET /management/v1/server/grants"


@dataclass(frozen=True)
class ChangeServerGrants(WritingGrants, Operation):
    """Give and take privileges on the server; what is so already stays so."""

    endpoint: ClassVar[str] = "POST /management/v1/server/grants"


@dataclass(frozen=True)
class ListServerPrivileges(ListingPrivileges, Operation):
    """The privileges that exist on the server, and which of them the caller may give."""

    endpoint: ClassVar[str] = "GET /management/v1/server/grants/grantable-privileges"


@dataclass(frozen=True)
class ListServerGrantHistory(ListingGrants, Operation):
    """The grants on the server that ended, and why."""

    endpoint: ClassVar[str] = "GET /management/v1/server/grants/history"


@dataclass(frozen=True)
class ListProjectGrants(ListingGrants, Operation):
    """The live grants on the project of the request."""

    endpoint: ClassVar[str] = "GET /management/v1/project/grants"


@dataclass(frozen=True)
class ChangeProjectGrants(WritingGrants, Operation):
    """Give and take privileges on the project of the request; what is so already stays so."""

    endpoint: ClassVar[str] = "POST /management/v1/project/grants"


@dataclass(frozen=True)
class ListProjectPrivileges(ListingPrivileges, Operation):
    """The privileges that exist on the project of the request, and which of them the caller may give."""

    endpoint: ClassVar[str] = "GET /management/v1/project/grants/grantable-privileges"


@dataclass(frozen=True)
class ListProjectGrantHistory(ListingGrants, Operation):
    """The grants on the project of the request that ended, and why."""

    endpoint: ClassVar[str] = "GET /management/v1/project/grants/history"


@dataclass(frozen=True)
class ListWarehouseGrants(ListingGrants, Operation):
    """The live grants on a warehouse."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/grants"


@dataclass(frozen=True)
class ChangeWarehouseGrants(WritingGrants, Operation):
    """Give and take privileges on a warehouse; what is so already stays so."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/grants"


@dataclass(frozen=True)
class ListWarehousePrivileges(ListingPrivileges, Operation):
    """The privileges that exist on a warehouse, and which of them the caller may give."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/grants/grantable-privileges"


@dataclass(frozen=True)
class ListWarehouseGrantHistory(ListingGrants, Operation):
    """The grants on a warehouse that ended, and why."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/grants/history"


@dataclass(frozen=True)
class ListNamespaceGrants(ListingGrants, Operation):
    """The live grants on a namespace."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/namespace/{namespace_id}/grants"


@dataclass(frozen=True)
class ChangeNamespaceGrants(WritingGrants, Operation):
    """Give and take privileges on a namespace; what is so already stays so."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/namespace/{namespace_id}/grants"


@dataclass(frozen=True)
class ListNamespacePrivileges(ListingPrivileges, Operation):
    """The privileges that exist on a namespace, and which of them the caller may give."""

    endpoint: ClassVar[str] = (
        "GET /management/v1/warehouse/{warehouse_id}/namespace/{namespace_id}/grants/grantable-privileges"
    )


@dataclass(frozen=True)
class ListNamespaceGrantHistory(ListingGrants, Operation):
    """The grants on a namespace that ended, and why."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/namespace/{namespace_id}/grants/history"


@dataclass(frozen=True)
class ListTableGrants(ListingGrants, Operation):
    """The live grants on a table."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/table/{table_id}/grants"


@dataclass(frozen=True)
class ChangeTableGrants(WritingGrants, Operation):
    """Give and take privileges on a table; what is so already stays so."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/table/{table_id}/grants"


@dataclass(frozen=True)
class ListTablePrivileges(ListingPrivileges, Operation):
    """The privileges that exist on a table, and which of them the caller may give."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/table/{table_id}/grants/grantable-privileges"


@dataclass(frozen=True)
class ListTableGrantHistory(ListingGrants, Operation):
    """The grants on a table that ended, and why."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/table/{table_id}/grants/history"


@dataclass(frozen=True)
class ListViewGrants(ListingGrants, Operation):
    """The live grants on a view."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/view/{view_id}/grants"


@dataclass(frozen=True)
class ListGenericTableGrants(ListingGrants, Operation):
    """The live grants on a generic table."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/generic-table/{generic_table_id}/grants"


@dataclass(frozen=True)
class ChangeViewGrants(WritingGrants, Operation):
    """Give and take privileges on a view; what is so already stays so."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/view/{view_id}/grants"


@dataclass(frozen=True)
class ChangeGenericTableGrants(WritingGrants, Operation):
    """Give and take privileges on a generic table; what is so already stays so."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/generic-table/{generic_table_id}/grants"


@dataclass(frozen=True)
class ListViewPrivileges(ListingPrivileges, Operation):
    """The privileges that exist on a view, and which of them the caller may give."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/view/{view_id}/grants/grantable-privileges"


@dataclass(frozen=True)
class ListGenericTablePrivileges(ListingPrivileges, Operation):
    """The privileges that exist on a generic table, and which of them the caller may give."""

    endpoint: ClassVar[str] = (
        "GET /management/v1/warehouse/{warehouse_id}/generic-table/{generic_table_id}/grants/grantable-privileges"
    )


@dataclass(frozen=True)
class ListViewGrantHistory(ListingGrants, Operation):
    """The grants on a view that ended, and why."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/view/{view_id}/grants/history"


@dataclass(frozen=True)
class ListGenericTableGrantHistory(ListingGrants, Operation):
    """The grants on a generic table that ended, and why."""

    endpoint: ClassVar[str] = (
        "GET /management/v1/warehouse/{warehouse_id}/generic-table/{generic_table_id}/grants/history"
    )


@dataclass(frozen=True)
class ListRoleGrants(ListingGrants, Operation):
    """The live grants on a role."""

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}/grants"


@dataclass(frozen=True)
class ChangeRoleGrants(WritingGrants, Operation):
    """Give and take privileges on a role; what is so already stays so."""

    endpoint: ClassVar[str] = "POST /management/v1/role/{role_id}/grants"


@dataclass(frozen=True)
class ListRolePrivileges(ListingPrivileges, Operation):
    """The privileges that exist on a role, and which of them the caller may give."""

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}/grants/grantable-privileges"


@dataclass(frozen=True)
class ListRoleGrantHistory(ListingGrants, Operation):
    """The grants on a role that ended, and why."""

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}/grants/history"


ListGrants = (
    ListServerGrants
    | ListProjectGrants
    | ListWarehouseGrants
    | ListNamespaceGrants
    | ListTableGrants
    | ListViewGrants
    | ListGenericTableGrants
    | ListRoleGrants
)
ChangeGrants = (
    ChangeServerGrants
    | ChangeProjectGrants
    | ChangeWarehouseGrants
    | ChangeNamespaceGrants
    | ChangeTableGrants
    | ChangeViewGrants
    | ChangeGenericTableGrants
    | ChangeRoleGrants
)
ListPrivileges = (
    ListServerPrivileges
    | ListProjectPrivileges
    | ListWarehousePrivileges
    | ListNamespacePrivileges
    | ListTablePrivileges
    | ListViewPrivileges
    | ListGenericTablePrivileges
    | ListRolePrivileges
)
ListGrantHistory = (
    ListServerGrantHistory
    | ListProjectGrantHistory
    | ListWarehouseGrantHistory
    | ListNamespaceGrantHistory
    | ListTableGrantHistory
    | ListViewGrantHistory
    | ListGenericTableGrantHistory
    | ListRoleGrantHistory
)
