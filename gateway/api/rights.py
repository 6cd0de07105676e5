# SPDX-License-Identifier: Apache-2.0
"""Endpoints that tell which actions somebody is allowed on an object: one pair for each kind of object."""

from __future__ import annotations

from gateway.access.operations.rights import (
    AskRights,
    GetDefaultProjectAccess,
    GetDefaultProjectAuthorizerActions,
    GetGenericTableAccess,
    GetGenericTableAuthorizerActions,
    GetNamespaceAccess,
    GetNamespaceAuthorizerActions,
    GetProjectAccess,
    GetProjectAuthorizerActions,
    GetRoleAccess,
    GetRoleAuthorizerActions,
    GetServerAccess,
    GetServerAuthorizerActions,
    GetTableAccess,
    GetTableAuthorizerActions,
    GetViewAccess,
    GetViewAuthorizerActions,
    GetWarehouseAccess,
    GetWarehouseAuthorizerActions,
)
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.api.targets import Target
from gateway.protocol.rights import ActionsAnswer


def _serve(operation: type[AskRights], target: Target) -> None:
    @serves(operation)
    async def actions(ctx: Ctx) -> ActionsAnswer:
        return await ctx.parts.rights.allowed_actions(await ctx.admit(operation(target(ctx), ctx.principal())))


_serve(GetServerAccess, targets.server)
_serve(GetServerAuthorizerActions, targets.server)
_serve(GetDefaultProjectAccess, targets.default_project)
_serve(GetDefaultProjectAuthorizerActions, targets.default_project)
_serve(GetProjectAccess, targets.project)
_serve(GetProjectAuthorizerActions, targets.project)
_serve(GetWarehouseAccess, targets.warehouse)
_serve(GetWarehouseAuthorizerActions, targets.warehouse)
_serve(GetNamespaceAccess, targets.namespace)
_serve(GetNamespaceAuthorizerActions, targets.namespace)
_serve(GetTableAccess, targets.table)
_serve(GetTableAuthorizerActions, targets.table)
_serve(GetViewAccess, targets.view)
_serve(GetGenericTableAccess, targets.generic_table)
_serve(GetViewAuthorizerActions, targets.view)
_serve(GetGenericTableAuthorizerActions, targets.generic_table)
_serve(GetRoleAccess, targets.role)
_serve(GetRoleAuthorizerActions, targets.role)
