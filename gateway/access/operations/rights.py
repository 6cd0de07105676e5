# SPDX-License-Identifier: Apache-2.0
"""Asking which actions somebody is allowed on an object (`lakekeeper.md` 3.6).

`access` tells all actions and is deprecated there; `authorizer-actions` those that only the relationship model knows:
handing out rights, managed access, acting as a role. About oneself everybody asks who sees the object or manages its
grants; about others who may read its assignments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.operation import Operation
from gateway.access.refs import Ref
from gateway.access.relations import VISIBLE_BY, Can
from gateway.access.tuples import Principal


@dataclass(frozen=True)
class AskingRights:
    """Part of operations that tell what `principal` (the caller when None) may do on an object."""

    authorizer_only: ClassVar[bool]
    on: Ref
    principal: Principal | None = None

    def demands(self) -> tuple[Demand, ...]:
        visible_by = VISIBLE_BY.get(self.on.type)
        if self.principal is not None:
            return (Demand(Can.READ_ASSIGNMENTS, self.on),)
        if visible_by is None:
            return ()
        return (Demand(visible_by, self.on, alternative=Can.READ_ASSIGNMENTS),)

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.on,)


@dataclass(frozen=True)
class GetServerAccess(AskingRights, Operation):
    """Which of all actions somebody is allowed on the server."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/server/access"
    authorizer_only: ClassVar[bool] = False
    open_to_self: ClassVar[str] = "about oneself; asking about others demands can_read_assignments"


@dataclass(frozen=True)
class GetServerAuthorizerActions(AskingRights, Operation):
    """Which of the actions of the relationship model somebody is allowed on the server."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/server/authorizer-actions"
    authorizer_only: ClassVar[bool] = True
    open_to_self: ClassVar[str] = "about oneself; asking about others demands can_read_assignments"


@dataclass(frozen=True)
class GetDefaultProjectAccess(AskingRights, Operation):
    """Which of all actions somebody is allowed on the project of the request."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/project/access"
    authorizer_only: ClassVar[bool] = False


@dataclass(frozen=True)
class GetDefaultProjectAuthorizerActions(AskingRights, Operation):
    """Which of the actions of the relationship model somebody is allowed on the project of the request."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/project/authorizer-actions"
    authorizer_only: ClassVar[bool] = True


@dataclass(frozen=True)
class GetProjectAccess(AskingRights, Operation):
    """Which of all actions somebody is allowed on a project."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/project/{project_id}/access"
    authorizer_only: ClassVar[bool] = False


@dataclass(frozen=True)
class GetProjectAuthorizerActions(AskingRights, Operation):
    """Which of the actions of the relationship model somebody is allowed on a project."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/project/{project_id}/authorizer-actions"
    authorizer_only: ClassVar[bool] = True


@dataclass(frozen=True)
class GetWarehouseAccess(AskingRights, Operation):
    """Which of all actions somebody is allowed on a warehouse."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/warehouse/{warehouse_id}/access"
    authorizer_only: ClassVar[bool] = False


@dataclass(frozen=True)
class GetWarehouseAuthorizerActions(AskingRights, Operation):
    """Which of the actions of the relationship model somebody is allowed on a warehouse."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/warehouse/{warehouse_id}/authorizer-actions"
    authorizer_only: ClassVar[bool] = True


@dataclass(frozen=True)
class GetNamespaceAccess(AskingRights, Operation):
    """Which of all actions somebody is allowed on a namespace."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/namespace/{namespace_id}/access"
    authorizer_only: ClassVar[bool] = False


@dataclass(frozen=True)
class GetNamespaceAuthorizerActions(AskingRights, Operation):
    """Which of the actions of the relationship model somebody is allowed on a namespace."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/namespace/{namespace_id}/authorizer-actions"
    authorizer_only: ClassVar[bool] = True


@dataclass(frozen=True)
class GetTableAccess(AskingRights, Operation):
    """Which of all actions somebody is allowed on a table."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/warehouse/{warehouse_id}/table/{table_id}/access"
    authorizer_only: ClassVar[bool] = False


@dataclass(frozen=True)
class GetTableAuthorizerActions(AskingRights, Operation):
    """Which of the actions of the relationship model somebody is allowed on a table."""

    endpoint: ClassVar[str] = (
        "GET /management/v1/permissions/warehouse/{warehouse_id}/table/{table_id}/authorizer-actions"
    )
    authorizer_only: ClassVar[bool] = True


@dataclass(frozen=True)
class GetViewAccess(AskingRights, Operation):
    """Which of all actions somebody is allowed on a view."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/warehouse/{warehouse_id}/view/{view_id}/access"
    authorizer_only: ClassVar[bool] = False


@dataclass(frozen=True)
class GetGenericTableAccess(AskingRights, Operation):
    """Which of all actions somebody is allowed on a generic table."""

    endpoint: ClassVar[str] = (
        "GET /management/v1/permissions/warehouse/{warehouse_id}/generic-table/{generic_table_id}/access"
    )
    authorizer_only: ClassVar[bool] = False


@dataclass(frozen=True)
class GetViewAuthorizerActions(AskingRights, Operation):
    """Which of the actions of the relationship model somebody is allowed on a view."""

    endpoint: ClassVar[str] = (
        "GET /management/v1/permissions/warehouse/{warehouse_id}/view/{view_id}/authorizer-actions"
    )
    authorizer_only: ClassVar[bool] = True


@dataclass(frozen=True)
class GetGenericTableAuthorizerActions(AskingRights, Operation):
    """Which of the actions of the relationship model somebody is allowed on a generic table."""

    endpoint: ClassVar[str] = (
        "GET /management/v1/permissions/warehouse/{warehouse_id}/generic-table/{generic_table_id}/authorizer-actions"
    )
    authorizer_only: ClassVar[bool] = True


@dataclass(frozen=True)
class GetRoleAccess(AskingRights, Operation):
    """Which of all actions somebody is allowed on a role."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/role/{role_id}/access"
    authorizer_only: ClassVar[bool] = False


@dataclass(frozen=True)
class GetRoleAuthorizerActions(AskingRights, Operation):
    """Which of the actions of the relationship model somebody is allowed on a role."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/role/{role_id}/authorizer-actions"
    authorizer_only: ClassVar[bool] = True


AskRights = (
    GetServerAccess
    | GetServerAuthorizerActions
    | GetDefaultProjectAccess
    | GetDefaultProjectAuthorizerActions
    | GetProjectAccess
    | GetProjectAuthorizerActions
    | GetWarehouseAccess
    | GetWarehouseAuthorizerActions
    | GetNamespaceAccess
    | GetNamespaceAuthorizerActions
    | GetTableAccess
    | GetTableAuthorizerActions
    | GetViewAccess
    | GetGenericTableAccess
    | GetViewAuthorizerActions
    | GetGenericTableAuthorizerActions
    | GetRoleAccess
    | GetRoleAuthorizerActions
)
