# SPDX-License-Identifier: Apache-2.0
"""Endpoints that tell which catalog actions somebody is allowed on an object: one for each kind of object."""

from __future__ import annotations

from gateway.access.operations.actions import (
    AskActions,
    GetGenericTableActions,
    GetNamespaceActions,
    GetProjectActions,
    GetRoleActions,
    GetServerActions,
    GetTableActions,
    GetUserActions,
    GetViewActions,
    GetWarehouseActions,
)
from gateway.access.refs import UserRef
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.api.targets import Target
from gateway.protocol.rights import CatalogActionsAnswer


def _serve(operation: type[AskActions], target: Target) -> None:
    @serves(operation)
    async def actions(ctx: Ctx) -> CatalogActionsAnswer:
        return await ctx.parts.rights.catalog_actions(await ctx.admit(operation(target(ctx), ctx.principal())))


_serve(GetServerActions, targets.server)
_serve(GetProjectActions, targets.default_project)
_serve(GetWarehouseActions, targets.warehouse)
_serve(GetNamespaceActions, targets.namespace_within)
_serve(GetTableActions, targets.table)
_serve(GetViewActions, targets.view)
_serve(GetGenericTableActions, targets.generic_table)
_serve(GetRoleActions, targets.role)


@serves(GetUserActions)
async def get_user_actions(ctx: Ctx, user_id: str) -> CatalogActionsAnswer:
    """What somebody may do with the record of a user."""
    return await ctx.parts.rights.user_actions(await ctx.admit(GetUserActions(UserRef(user_id), ctx.principal())))
