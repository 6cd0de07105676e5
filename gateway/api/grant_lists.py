# SPDX-License-Identifier: Apache-2.0
"""Endpoints of the grants API: four for each kind of object, and what one principal holds."""

from __future__ import annotations

from gateway.access.operations.grant_lists import (
    ChangeGenericTableGrants,
    ChangeGrants,
    ChangeNamespaceGrants,
    ChangeProjectGrants,
    ChangeRoleGrants,
    ChangeServerGrants,
    ChangeTableGrants,
    ChangeViewGrants,
    ChangeWarehouseGrants,
    ListGenericTableGrantHistory,
    ListGenericTableGrants,
    ListGenericTablePrivileges,
    ListGrantHistory,
    ListGrants,
    ListNamespaceGrantHistory,
    ListNamespaceGrants,
    ListNamespacePrivileges,
    ListPrincipalGrants,
    ListPrivileges,
    ListProjectGrantHistory,
    ListProjectGrants,
    ListProjectPrivileges,
    ListRoleGrantHistory,
    ListRoleGrants,
    ListRolePrivileges,
    ListServerGrantHistory,
    ListServerGrants,
    ListServerPrivileges,
    ListTableGrantHistory,
    ListTableGrants,
    ListTablePrivileges,
    ListViewGrantHistory,
    ListViewGrants,
    ListViewPrivileges,
    ListWarehouseGrantHistory,
    ListWarehouseGrants,
    ListWarehousePrivileges,
)
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.api.targets import Target
from gateway.governance.grant_requests import parse_grants, require_writable
from gateway.protocol.grants import GrantablePrivilege, GrantHistory, GrantList, WriteGrantsRequest


@serves(ListPrincipalGrants)
async def list_principal_grants(ctx: Ctx) -> GrantList:
    """Everything somebody holds in a project."""
    operation = ListPrincipalGrants(ctx.project(), ctx.principal(), *ctx.page())
    return await ctx.parts.grant_lists.of_principal(await ctx.admit(operation))


def _serve_lists(
    grants: type[ListGrants], history: type[ListGrantHistory], privileges: type[ListPrivileges], target: Target
) -> None:
    @serves(grants)
    async def list_grants(ctx: Ctx) -> GrantList:
        return await ctx.parts.grant_lists.on_object(await ctx.admit(grants(target(ctx), *ctx.page())))

    @serves(history)
    async def list_history(ctx: Ctx) -> GrantHistory:
        return await ctx.parts.grant_lists.history(await ctx.admit(history(target(ctx), *ctx.page())))

    @serves(privileges)
    async def list_privileges(ctx: Ctx) -> list[GrantablePrivilege]:
        return await ctx.parts.grant_lists.grantable(await ctx.admit(privileges(target(ctx))))


def _serve_change(operation: type[ChangeGrants], target: Target) -> None:
    @serves(operation)
    async def change_grants(ctx: Ctx) -> None:
        on, request = target(ctx), await ctx.body(WriteGrantsRequest)
        change = require_writable(on, parse_grants(request.writes), parse_grants(request.deletes))
        await ctx.parts.grants.change(await ctx.admit(operation(on, *change)))


_serve_lists(ListServerGrants, ListServerGrantHistory, ListServerPrivileges, targets.server)
_serve_lists(ListProjectGrants, ListProjectGrantHistory, ListProjectPrivileges, targets.default_project)
_serve_lists(ListWarehouseGrants, ListWarehouseGrantHistory, ListWarehousePrivileges, targets.warehouse)
_serve_lists(ListNamespaceGrants, ListNamespaceGrantHistory, ListNamespacePrivileges, targets.namespace_within)
_serve_lists(ListTableGrants, ListTableGrantHistory, ListTablePrivileges, targets.kept_table)
_serve_lists(ListViewGrants, ListViewGrantHistory, ListViewPrivileges, targets.kept_view)
_serve_lists(
    ListGenericTableGrants, ListGenericTableGrantHistory, ListGenericTablePrivileges, targets.kept_generic_table
)
_serve_lists(ListRoleGrants, ListRoleGrantHistory, ListRolePrivileges, targets.role)
_serve_change(ChangeServerGrants, targets.server)
_serve_change(ChangeProjectGrants, targets.default_project)
_serve_change(ChangeWarehouseGrants, targets.warehouse)
_serve_change(ChangeNamespaceGrants, targets.namespace_within)
_serve_change(ChangeTableGrants, targets.kept_table)
_serve_change(ChangeViewGrants, targets.kept_view)
_serve_change(ChangeGenericTableGrants, targets.kept_generic_table)
_serve_change(ChangeRoleGrants, targets.role)
