# SPDX-License-Identifier: Apache-2.0
"""Protection of namespaces, tables and views."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from gateway.access.operations.protection import (
    GetGenericTableProtection,
    GetNamespaceProtection,
    GetProtection,
    GetTableProtection,
    GetViewProtection,
    SetGenericTableProtection,
    SetNamespaceProtection,
    SetTableProtection,
    SetViewProtection,
)
from gateway.access.refs import GenericTableIdRef, NamespaceIdRef, TableIdRef, ViewIdRef
from gateway.access.repetition import Remembered
from gateway.access.wire_lifecycle import ProtectionAnswer, SetProtectionRequest
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves

Target = Callable[[Ctx], NamespaceIdRef | TableIdRef | ViewIdRef | GenericTableIdRef]


def _as_it_is(reading: type[GetProtection], target: Target) -> Callable[[Ctx, Remembered], Awaitable[ProtectionAnswer]]:
    async def repeat(ctx: Ctx, remembered: Remembered) -> ProtectionAnswer:
        return await ctx.parts.protection.get(await ctx.admit(reading(target(ctx))))

    return repeat


@serves(GetNamespaceProtection)
async def get_namespace_protection(ctx: Ctx) -> ProtectionAnswer:
    """Whether a namespace is protected."""
    return await ctx.parts.protection.get(await ctx.admit(GetNamespaceProtection(targets.namespace_within(ctx))))


@serves(SetNamespaceProtection, repeat=_as_it_is(GetNamespaceProtection, targets.namespace_within))
async def set_namespace_protection(ctx: Ctx) -> ProtectionAnswer:
    """Protect a namespace, or no longer."""
    on, request = targets.namespace_within(ctx), await ctx.body(SetProtectionRequest)
    return await ctx.parts.protection.set(await ctx.admit(SetNamespaceProtection(on, request.protected)))


@serves(GetTableProtection)
async def get_table_protection(ctx: Ctx) -> ProtectionAnswer:
    """Whether a table is protected."""
    return await ctx.parts.protection.get(await ctx.admit(GetTableProtection(targets.table(ctx))))


@serves(SetTableProtection, repeat=_as_it_is(GetTableProtection, targets.table))
async def set_table_protection(ctx: Ctx) -> ProtectionAnswer:
    """Protect a table, or no longer."""
    on, request = targets.table(ctx), await ctx.body(SetProtectionRequest)
    return await ctx.parts.protection.set(await ctx.admit(SetTableProtection(on, request.protected)))


@serves(GetViewProtection)
async def get_view_protection(ctx: Ctx) -> ProtectionAnswer:
    """Whether a view is protected."""
    return await ctx.parts.protection.get(await ctx.admit(GetViewProtection(targets.view(ctx))))


@serves(SetViewProtection, repeat=_as_it_is(GetViewProtection, targets.view))
async def set_view_protection(ctx: Ctx) -> ProtectionAnswer:
    """Protect a view, or no longer."""
    on, request = targets.view(ctx), await ctx.body(SetProtectionRequest)
    return await ctx.parts.protection.set(await ctx.admit(SetViewProtection(on, request.protected)))


@serves(GetGenericTableProtection)
async def get_generic_table_protection(ctx: Ctx) -> ProtectionAnswer:
    """Whether a generic table is protected."""
    return await ctx.parts.protection.get(await ctx.admit(GetGenericTableProtection(targets.generic_table(ctx))))


@serves(SetGenericTableProtection, repeat=_as_it_is(GetGenericTableProtection, targets.generic_table))
async def set_generic_table_protection(ctx: Ctx) -> ProtectionAnswer:
    """Protect a generic table, or no longer."""
    on, request = targets.generic_table(ctx), await ctx.body(SetProtectionRequest)
    return await ctx.parts.protection.set(await ctx.admit(SetGenericTableProtection(on, request.protected)))
