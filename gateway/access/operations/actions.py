# SPDX-License-Identifier: Apache-2.0
"""Asking which catalog actions somebody is allowed on an object (`lakekeeper.md` 3.1 to 3.4, `…/actions`).

They are the actions that `batch-check` knows; those of the relationship model alone (handing out rights) are asked for
in `rights.py`. About oneself everybody asks who finds the object in a list; about others who may read its assignments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import Operation
from gateway.access.refs import ObjectType, Ref, ServerRef, UserRef
from gateway.access.relations import Can
from gateway.access.tuples import Principal

#: What it takes to ask about oneself. Whoever is in a role may know what they may do with it.
_ASKED_BY: dict[ObjectType, Can] = {
    ObjectType.PROJECT: Can.GET_METADATA,
    ObjectType.WAREHOUSE: Can.INCLUDE_IN_LIST,
    ObjectType.NAMESPACE: Can.INCLUDE_IN_LIST,
    ObjectType.TABLE: Can.INCLUDE_IN_LIST,
    ObjectType.VIEW: Can.INCLUDE_IN_LIST,
    ObjectType.GENERIC_TABLE: Can.INCLUDE_IN_LIST,
    ObjectType.ROLE: Can.READ_METADATA,
}


@dataclass(frozen=True)
class _AskingActions:
    """Part of operations that tell what `principal` (the caller when None) may do with an object."""

    on: Ref
    principal: Principal | None = None

    def demands(self) -> tuple[Demand, ...]:
        if self.principal is not None:
            return (Demand(Can.READ_ASSIGNMENTS, self.on),)
        asked_by = _ASKED_BY.get(self.on.type)
        return () if asked_by is None else (Demand(asked_by, self.on),)

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.on,)


@dataclass(frozen=True)
class GetServerActions(_AskingActions, Operation):
    """Which actions somebody is allowed on the server."""

    endpoint: ClassVar[str] = "GET /management/v1/server/actions"
    open_to_self: ClassVar[str] = "about oneself; asking about others demands can_read_assignments"


@dataclass(frozen=True)
class GetProjectActions(_AskingActions, Operation):
    """Which actions somebody is allowed on the project of the request."""

    endpoint: ClassVar[str] = "GET /management/v1/project/actions"


@dataclass(frozen=True)
class GetWarehouseActions(_AskingActions, Operation):
    """Which actions somebody is allowed on a warehouse."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/actions"


@dataclass(frozen=True)
class GetNamespaceActions(_AskingActions, Operation):
    """Which actions somebody is allowed on a namespace."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/namespace/{namespace_id}/actions"


@dataclass(frozen=True)
class GetTableActions(_AskingActions, Operation):
    """Which actions somebody is allowed on a table."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/table/{table_id}/actions"


@dataclass(frozen=True)
class GetViewActions(_AskingActions, Operation):
    """Which actions somebody is allowed on a view."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/view/{view_id}/actions"


@dataclass(frozen=True)
class GetGenericTableActions(_AskingActions, Operation):
    """Which actions somebody is allowed on a generic table."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/generic-table/{generic_table_id}/actions"


@dataclass(frozen=True)
class GetRoleActions(_AskingActions, Operation):
    """Which actions somebody is allowed on a role."""

    endpoint: ClassVar[str] = "GET /management/v1/role/{role_id}/actions"


@dataclass(frozen=True)
class GetUserActions(Operation):
    """What somebody may do with the record of a user.

    The relationship model has no rights on single users: they are rights on the server, or the record is one's own.
    """

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/actions"
    open_to_self: ClassVar[str] = "about what one may do oneself; asking about others demands can_list_users"
    user: UserRef
    principal: Principal | None = None

    def demands(self) -> tuple[Demand, ...]:
        return () if self.principal is None else (Demand(Can.LIST_USERS, ServerRef()),)

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.user, ServerRef())

    def facts(self) -> Facts:
        return {"about": self.user.user_id}


AskActions = (
    GetServerActions
    | GetProjectActions
    | GetWarehouseActions
    | GetNamespaceActions
    | GetTableActions
    | GetViewActions
    | GetGenericTableActions
    | GetRoleActions
)
