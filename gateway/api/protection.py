# SPDX-License-Identifier: Apache-2.0
"""Protection of namespaces, tables and views."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from gateway.access.operations.protection import (
    GetGenericTableProtection,
    GetNamespaceProtection,
    GetProtection,
    GetTableProtection,
    GetViewProtection,
    SetGenericTableProtection,
    SetNamespaceProtection,
    SetProtection,
    SetTableProtection,
    SetViewProtection,
)
from gateway.access.refs import GenericTableIdRef, NamespaceIdRef, TableIdRef, ViewIdRef
from gateway.access.repetition import Remembered
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.protocol.protection import ProtectionAnswer, SetProtectionRequest

Target: TypeAlias = Callable[[Ctx], NamespaceIdRef | TableIdRef | ViewIdRef | GenericTableIdRef]


async def _read(ctx: Ctx, reading: type[GetProtection], target: Target) -> ProtectionAnswer:
    return await ctx.parts.protection.get(await ctx.admit(reading(target(ctx))))


async def _written(ctx: Ctx, setting: type[SetProtection], target: Target) -> ProtectionAnswer:
    on, request = target(ctx), await ctx.body(SetProtectionRequest)
    return await ctx.parts.protection.set(await ctx.admit(setting(on, request.protected)))


def _as_it_is(reading: type[GetProtection], target: Target) -> Callable[[Ctx, Remembered], Awaitable[ProtectionAnswer]]:
    async def repeat(ctx: Ctx, remembered: Remembered) -> ProtectionAnswer:
        return await _read(ctx, reading, target)

    return repeat


@serves(GetNamespaceProtection)
async def get_namespace_protection(ctx: Ctx) -> ProtectionAnswer:
    """Whether a namespace is protected."""
    return await _read(ctx, GetNamespaceProtection, targets.namespace_within)


@serves(SetNamespaceProtection, repeat=_as_it_is(GetNamespaceProtection, targets.namespace_within))
async def set_namespace_protection(ctx: Ctx) -> ProtectionAnswer:
    """Protect a namespace, or no longer."""
    return await _written(ctx, SetNamespaceProtection, targets.namespace_within)


@serves(GetTableProtection)
async def get_table_protection(ctx: Ctx) -> ProtectionAnswer:
    """Whether a table is protected."""
    return await _read(ctx, GetTableProtection, targets.table)


@serves(SetTableProtection, repeat=_as_it_is(GetTableProtection, targets.table))
async def set_table_protection(ctx: Ctx) -> ProtectionAnswer:
    """Protect a table, or no longer."""
    return await _written(ctx, SetTableProtection, targets.table)


@serves(GetViewProtection)
async def get_view_protection(ctx: Ctx) -> ProtectionAnswer:
    """Whether a view is protected."""
    return await _read(ctx, GetViewProtection, targets.view)


@serves(SetViewProtection, repeat=_as_it_is(GetViewProtection, targets.view))
async def set_view_protection(ctx: Ctx) -> ProtectionAnswer:
    """Protect a view, or no longer."""
    return await _written(ctx, SetViewProtection, targets.view)


@serves(GetGenericTableProtection)
async def get_generic_table_protection(ctx: Ctx) -> ProtectionAnswer:
    """Whether a generic table is protected."""
    return await _read(ctx, GetGenericTableProtection, targets.generic_table)


@serves(SetGenericTableProtection, repeat=_as_it_is(GetGenericTableProtection, targets.generic_table))
async def set_generic_table_protection(ctx: Ctx) -> ProtectionAnswer:
    """Protect a generic table, or no longer."""
    return await _written(ctx, SetGenericTableProtection, targets.generic_table)
