# SPDX-License-Identifier: Apache-2.0
"""Endpoints for namespaces and their moves, and for the registration of tables and views."""

from __future__ import annotations

from gateway.access.idempotency import RecordedSuccess
from gateway.access.nouns.refs import NamespaceRef, TableRef, TabularRef, View, WarehouseRef
from gateway.access.operations.credentials import VendCredentials
from gateway.access.operations.namespaces import (
    CreateNamespace,
    DropNamespace,
    ListNamespaces,
    LoadNamespace,
    MoveNamespace,
    NamespaceExists,
    UpdateNamespaceProperties,
)
from gateway.access.operations.registrations import AdoptTable, AdoptView, RegisterTable, RegisterView, UnregisterTable
from gateway.access.operations.tables import DropTable, LoadOptions, LoadTable
from gateway.access.operations.views import LoadView
from gateway.access.request import Header, Query
from gateway.access.results import Tagged
from gateway.api.answers import TableAnswer, cached_response
from gateway.api.binding import client_manages_storage, parse_adopt_header, prefers_signing
from gateway.api.context import Ctx
from gateway.api.serves import replay_by, serve, serves
from gateway.features.namespaces.namespace_moves import NamespaceMoves
from gateway.features.namespaces.namespaces import Namespaces
from gateway.features.namespaces.registrations import Registrations
from gateway.features.tables.tables import Tables
from gateway.features.views.views import Views
from gateway.iceberg.errors import CatalogError
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from gateway.iceberg.wire import (
    CreateNamespaceRequest,
    ListNamespacesResponse,
    LoadViewResult,
    NamespaceResponse,
    RegisterTableRequest,
    RegisterViewRequest,
    UpdateNamespacePropertiesResponse,
)


@serves(ListNamespaces, reads=(Query("parent"),))
async def list_namespaces(ctx: Ctx) -> ListNamespacesResponse:
    """List the namespaces in `parent`, or at the top level if it is absent or empty (Iceberg REST specification)."""
    warehouse, above = ctx.ref(WarehouseRef), ctx.query("parent")
    parent = NamespaceRef(warehouse.warehouse_id, Namespace.parse(above)) if above else warehouse
    return await ctx.use(Namespaces).list(await ctx.admit(await ctx.read(ListNamespaces, parent=parent)))


async def replay_create(ctx: Ctx, recorded_success: RecordedSuccess) -> NamespaceResponse:
    """Return the current namespace."""
    namespace = (await ctx.body(CreateNamespaceRequest)).identifier
    ref = NamespaceRef(ctx.ref(WarehouseRef).warehouse_id, namespace)
    return await ctx.use(Namespaces).load(await ctx.admit(LoadNamespace(ref)))


async def replay_update(ctx: Ctx, recorded_success: RecordedSuccess) -> UpdateNamespacePropertiesResponse:
    """Return the recorded names of changed properties, if the caller still has the right to change them."""
    permit = await ctx.admit(await ctx.read(UpdateNamespaceProperties))
    return await ctx.use(Namespaces).repeat_update(permit, recorded_success)


serve(CreateNamespace, Namespaces.create, replay=replay_create)
serve(LoadNamespace, Namespaces.load)
serve(NamespaceExists, Namespaces.exists)
serve(DropNamespace, Namespaces.drop)
serve(UpdateNamespaceProperties, Namespaces.update_properties, replay=replay_update)


serve(MoveNamespace, NamespaceMoves.move, replay=replay_by(MoveNamespace, NamespaceMoves.repeat))


_DELEGATION = Header("x-iceberg-access-delegation")
_ADOPT = Header("x-lakegate-adopt")


async def replay_table(ctx: Ctx, recorded_success: RecordedSuccess) -> TableAnswer:
    """Return the current table, with credentials if the caller has the right to them now."""
    table = (await ctx.read(RegisterTable)).table
    return await _load(ctx, table, client_manages_storage(ctx.header("x-iceberg-access-delegation")))


async def replay_view(ctx: Ctx, recorded_success: RecordedSuccess) -> LoadViewResult:
    """Return the current view."""
    namespace, name = ctx.ref(NamespaceRef), (await ctx.body(RegisterViewRequest)).name
    view = TabularRef(View, namespace.warehouse_id, TableIdentifier(namespace.namespace, name))
    return await ctx.use(Views).load(await ctx.admit(LoadView(view)))


@serves(RegisterTable, AdoptTable, replay=replay_table, reads=(_DELEGATION, _ADOPT))
async def register_table(ctx: Ctx) -> TableAnswer:
    """Register a table from its metadata file; with `overwrite`, replace an existing table of that name.

    The file must be in a location of a table or view that the caller owned, and contain that location. With the header
    `X-Lakegate-Adopt: true` it may be anywhere below the base location of the warehouse. That requires
    `manage_storage`.

    The response is that of loading the new table, by a decision of its own, with credentials for its owner. If the load
    fails, for example because OpenFGA does not have the tuples yet or a data policy restricts the caller, the response
    contains only the metadata, without what is computed from the rows.
    """
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    request = await ctx.body(RegisterTableRequest)
    kind: type[AdoptTable | RegisterTable] = (
        AdoptTable if parse_adopt_header(ctx.header("x-lakegate-adopt")) else RegisterTable
    )
    operation = await ctx.read(kind)
    drop = DropTable(operation.table, purge=False) if request.overwrite else None
    done = await ctx.use(Registrations).table(*await ctx.admit_with(operation, drop))
    try:
        return await _load(ctx, operation.table, managed)
    except CatalogError:
        return cached_response(Tagged("", done))


async def _load(ctx: Ctx, ref: TableRef, managed: bool) -> TableAnswer:
    signing = prefers_signing(ctx.header("x-iceberg-access-delegation"))
    operation = LoadTable(ref, LoadOptions(client_managed=managed))
    keys = None if managed else VendCredentials(ref, signing)
    return cached_response(await ctx.use(Tables).load(*await ctx.admit_with(operation, keys)))


@serves(RegisterView, AdoptView, replay=replay_view, reads=(_ADOPT,))
async def register_view(ctx: Ctx) -> LoadViewResult:
    """Register a view from its metadata file. The rules for the location of the file are those of `register_table`."""
    kind = AdoptView if parse_adopt_header(ctx.header("x-lakegate-adopt")) else RegisterView
    return await ctx.use(Registrations).view(await ctx.admit(await ctx.read(kind)))


serve(UnregisterTable, Registrations.unregister)
