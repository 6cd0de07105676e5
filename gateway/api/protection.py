# SPDX-License-Identifier: Apache-2.0
"""Protection of namespaces, tables and views."""

from __future__ import annotations

from gateway.access.operations.protection import (
    GetGenericTableProtection,
    GetNamespaceProtection,
    GetTableProtection,
    GetViewProtection,
    SetGenericTableProtection,
    SetNamespaceProtection,
    SetTableProtection,
    SetViewProtection,
)
from gateway.access.wire_lifecycle import ProtectionAnswer, SetProtectionRequest
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves


@serves(GetNamespaceProtection)
async def get_namespace_protection(ctx: Ctx) -> ProtectionAnswer:
    """Whether a namespace is protected."""
    return await ctx.parts.protection.get(await ctx.admit(GetNamespaceProtection(targets.namespace_within(ctx))))


@serves(SetNamespaceProtection)
async def set_namespace_protection(ctx: Ctx) -> ProtectionAnswer:
    """Protect a namespace, or no longer."""
    on, request = targets.namespace_within(ctx), await ctx.body(SetProtectionRequest)
    return await ctx.parts.protection.set(await ctx.admit(SetNamespaceProtection(on, request.protected)))


@serves(GetTableProtection)
async def get_table_protection(ctx: Ctx) -> ProtectionAnswer:
    """Whether a table is protected."""
    return await ctx.parts.protection.get(await ctx.admit(GetTableProtection(targets.table(ctx))))


@serves(SetTableProtection)
async def set_table_protection(ctx: Ctx) -> ProtectionAnswer:
    """Protect a table, or no longer."""
    on, request = targets.table(ctx), await ctx.body(SetProtectionRequest)
    return await ctx.parts.protection.set(await ctx.admit(SetTableProtection(on, request.protected)))


@serves(GetViewProtection)
async def get_view_protection(ctx: Ctx) -> ProtectionAnswer:
    """Whether a view is protected."""
    return await ctx.parts.protection.get(await ctx.admit(GetViewProtection(targets.view(ctx))))


@serves(SetViewProtection)
async def set_view_protection(ctx: Ctx) -> ProtectionAnswer:
    """Protect a view, or no longer."""
    on, request = targets.view(ctx), await ctx.body(SetProtectionRequest)
    return await ctx.parts.protection.set(await ctx.admit(SetViewProtection(on, request.protected)))


@serves(GetGenericTableProtection)
async def get_generic_table_protection(ctx: Ctx) -> ProtectionAnswer:
    """Whether a generic table is protected."""
    return await ctx.parts.protection.get(await ctx.admit(GetGenericTableProtection(targets.generic_table(ctx))))


@serves(SetGenericTableProtection)
async def set_generic_table_protection(ctx: Ctx) -> ProtectionAnswer:
    """Protect a generic table, or no longer."""
    on, request = targets.generic_table(ctx), await ctx.body(SetProtectionRequest)
    return await ctx.parts.protection.set(await ctx.admit(SetGenericTableProtection(on, request.protected)))
