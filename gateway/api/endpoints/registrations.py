# SPDX-License-Identifier: Apache-2.0
"""Endpoints of the catalog protocol that register and unregister existing metadata files."""

from __future__ import annotations

from gateway.access.idempotency import Remembered
from gateway.access.operations.credentials import VendCredentials
from gateway.access.operations.registrations import AdoptTable, AdoptView, RegisterTable, RegisterView, UnregisterTable
from gateway.access.operations.tables import DropTable, LoadOptions, LoadTable
from gateway.access.operations.views import LoadView
from gateway.access.refs import NamespaceRef, TableRef, TabularRef, View
from gateway.access.request import Header
from gateway.api.answers import TableAnswer, not_modified_or
from gateway.api.context import Ctx
from gateway.api.header_values import adopts, client_manages_storage
from gateway.api.serves import serve, serves
from gateway.catalog.etags import Tagged
from gateway.catalog.registrations import Registrations
from gateway.iceberg.errors import CatalogError
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.wire import LoadViewResult, RegisterTableRequest, RegisterViewRequest

_DELEGATION = Header("x-iceberg-access-delegation")
_ADOPT = Header("x-lakegate-adopt")


async def replay_table(ctx: Ctx, remembered: Remembered) -> TableAnswer:
    """Return the table as it is now, with credentials for callers that may have them now."""
    table = (await ctx.read(RegisterTable)).table
    return await _load(ctx, table, client_manages_storage(ctx.header("x-iceberg-access-delegation")))


async def replay_view(ctx: Ctx, remembered: Remembered) -> LoadViewResult:
    """Return the view as it is now."""
    namespace, name = ctx.ref(NamespaceRef), (await ctx.body(RegisterViewRequest)).name
    view = TabularRef(View, namespace.warehouse_id, TableIdentifier(namespace.namespace, name))
    return await ctx.services.views.load(await ctx.admit(LoadView(view)))


@serves(RegisterTable, AdoptTable, replay=replay_table, reads=(_DELEGATION, _ADOPT))
async def register_table(ctx: Ctx) -> TableAnswer:
    """Register a table by its metadata file, in the place of another one with `overwrite`.

    The file has to lie in a location of a table or view that the caller owned, and to name that location. With the
    header `X-Lakegate-Adopt: true` it may lie anywhere below the warehouse's base; that takes `manage_storage`.

    The answer is a load of the new table through the same door, with credentials for its owner. If that cannot be
    decided (OpenFGA does not have the tuples yet), the table is registered nevertheless and its metadata is the answer.
    """
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    request = await ctx.body(RegisterTableRequest)
    kind: type[AdoptTable | RegisterTable] = AdoptTable if adopts(ctx.header("x-lakegate-adopt")) else RegisterTable
    operation = await ctx.read(kind)
    drop = DropTable(operation.table, purge=False) if request.overwrite else None
    done = await ctx.services.registrations.table(*await ctx.admit_with(operation, drop))
    try:
        return await _load(ctx, operation.table, managed)
    except CatalogError:
        return not_modified_or(Tagged("", done))


async def _load(ctx: Ctx, ref: TableRef, managed: bool) -> TableAnswer:
    operation, keys = LoadTable(ref, LoadOptions(client_managed=managed)), None if managed else VendCredentials(ref)
    return not_modified_or(await ctx.services.tables.load(*await ctx.admit_with(operation, keys)))


@serves(RegisterView, AdoptView, replay=replay_view, reads=(_ADOPT,))
async def register_view(ctx: Ctx) -> LoadViewResult:
    """Register a view by its metadata file; where it may lie is as for a table."""
    kind = AdoptView if adopts(ctx.header("x-lakegate-adopt")) else RegisterView
    return await ctx.services.registrations.view(await ctx.admit(await ctx.read(kind)))


serve(UnregisterTable, Registrations.unregister)
