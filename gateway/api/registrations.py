# SPDX-License-Identifier: Apache-2.0
"""Endpoints of the catalog protocol that take in and let go what has metadata files already."""

from __future__ import annotations

from gateway.access.operations.credentials import VendCredentials
from gateway.access.operations.registrations import AdoptTable, AdoptView, RegisterTable, RegisterView, UnregisterTable
from gateway.access.operations.tables import DropTable, LoadOptions, LoadTable
from gateway.access.operations.views import LoadView
from gateway.access.refs import TableRef
from gateway.access.repetition import Remembered
from gateway.api.adoption import adopts
from gateway.api.answers import TableAnswer, not_modified_or
from gateway.api.context import Ctx
from gateway.api.delegation import client_manages_storage
from gateway.api.serves import serves
from gateway.catalog.etags import Tagged
from gateway.iceberg.errors import CatalogError
from gateway.iceberg.wire import LoadViewResult, RegisterTableRequest, RegisterViewRequest, UnregisterTableResult


async def repeat_table(ctx: Ctx, remembered: Remembered, prefix: str, namespace: str) -> TableAnswer:
    """The table as it is now, with credentials for who may have them now."""
    name = (await ctx.body(RegisterTableRequest)).name
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    return await _load(ctx, ctx.table(prefix, namespace, name), managed)


async def repeat_view(ctx: Ctx, remembered: Remembered, prefix: str, namespace: str) -> LoadViewResult:
    """The view as it is now."""
    name = (await ctx.body(RegisterViewRequest)).name
    return await ctx.parts.views.load(await ctx.admit(LoadView(ctx.view(prefix, namespace, name))))


@serves(RegisterTable, AdoptTable, repeat=repeat_table)
async def register_table(ctx: Ctx, prefix: str, namespace: str) -> TableAnswer:
    """Register a table by its metadata file, in the place of another one with `overwrite`.

    The file has to lie in a location of a table or view that the caller owned, and to name that location. With the
    header `X-Lakegate-Adopt: true` it may lie anywhere below the warehouse's base; that takes `manage_storage`.

    The answer is a load of the new table through the same door, with credentials for who owns it now. If that cannot be
    decided (OpenFGA has not been told yet), the table is registered nevertheless and its metadata is the answer.
    """
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    request = await ctx.body(RegisterTableRequest)
    kind = AdoptTable if adopts(ctx.header("x-lakegate-adopt")) else RegisterTable
    operation = kind(ctx.namespace(prefix, namespace), request)
    ref = operation.table
    if request.overwrite:
        done = await ctx.parts.registrations.table(*await ctx.admit_with(operation, DropTable(ref, purge=False)))
    else:
        done = await ctx.parts.registrations.table(await ctx.admit(operation), None)
    try:
        return await _load(ctx, ref, managed)
    except CatalogError:
        return not_modified_or(Tagged("", done))


async def _load(ctx: Ctx, ref: TableRef, managed: bool) -> TableAnswer:
    if managed:
        operation = LoadTable(ref, LoadOptions(client_managed=True))
        return not_modified_or(await ctx.parts.tables.load(await ctx.admit(operation), None))
    return not_modified_or(await ctx.parts.tables.load(*await ctx.admit_with(LoadTable(ref), VendCredentials(ref))))


@serves(UnregisterTable)
async def unregister_table(ctx: Ctx, prefix: str, namespace: str, table: str) -> UnregisterTableResult:
    """Let a table go and leave all its files."""
    return await ctx.parts.registrations.unregister(
        await ctx.admit(UnregisterTable(ctx.table(prefix, namespace, table)))
    )


@serves(RegisterView, AdoptView, repeat=repeat_view)
async def register_view(ctx: Ctx, prefix: str, namespace: str) -> LoadViewResult:
    """Register a view by its metadata file; where it may lie is as for a table."""
    request = await ctx.body(RegisterViewRequest)
    kind = AdoptView if adopts(ctx.header("x-lakegate-adopt")) else RegisterView
    return await ctx.parts.registrations.view(await ctx.admit(kind(ctx.namespace(prefix, namespace), request)))
