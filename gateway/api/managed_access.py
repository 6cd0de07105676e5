# SPDX-License-Identifier: Apache-2.0
"""Managed access of warehouses and namespaces."""

from __future__ import annotations

from gateway.access.operations.managed_access import (
    GetNamespacePermissions,
    GetWarehousePermissions,
    SetNamespaceManagedAccess,
    SetWarehouseManagedAccess,
)
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.protocol.rights import ManagedAccessRequest, NamespacePermissions, WarehousePermissions


@serves(GetWarehousePermissions)
async def get_warehouse_permissions(ctx: Ctx) -> WarehousePermissions | NamespacePermissions:
    """Whether access is managed."""
    return await ctx.parts.managed_access.get(await ctx.admit(GetWarehousePermissions(targets.warehouse(ctx))))


@serves(GetNamespacePermissions)
async def get_namespace_permissions(ctx: Ctx) -> WarehousePermissions | NamespacePermissions:
    """Whether access is managed, here or above."""
    return await ctx.parts.managed_access.get(await ctx.admit(GetNamespacePermissions(targets.namespace(ctx))))


@serves(SetWarehouseManagedAccess)
async def set_warehouse_managed_access(ctx: Ctx) -> None:
    """Manage access, or no longer."""
    on, request = targets.warehouse(ctx), await ctx.body(ManagedAccessRequest)
    permit = await ctx.admit(SetWarehouseManagedAccess(on, request.managed_access))
    await ctx.parts.managed_access.set(permit)


@serves(SetNamespaceManagedAccess)
async def set_namespace_managed_access(ctx: Ctx) -> None:
    """Manage access, or no longer."""
    on, request = targets.namespace(ctx), await ctx.body(ManagedAccessRequest)
    permit = await ctx.admit(SetNamespaceManagedAccess(on, request.managed_access))
    await ctx.parts.managed_access.set(permit)
