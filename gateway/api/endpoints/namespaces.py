# SPDX-License-Identifier: Apache-2.0
"""Namespace endpoints of the catalog protocol."""

from __future__ import annotations

from gateway.access.idempotency import RecordedSuccess
from gateway.access.operations.namespaces import (
    CreateNamespace,
    DropNamespace,
    ListNamespaces,
    LoadNamespace,
    NamespaceExists,
    UpdateNamespaceProperties,
)
from gateway.access.refs import NamespaceRef, WarehouseRef
from gateway.access.request import Query
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.catalog.namespaces import Namespaces
from gateway.iceberg.identifiers import Namespace
from gateway.iceberg.wire import (
    CreateNamespaceRequest,
    ListNamespacesResponse,
    NamespaceResponse,
    UpdateNamespacePropertiesResponse,
)


@serves(ListNamespaces, reads=(Query("parent"),))
async def list_namespaces(ctx: Ctx) -> ListNamespacesResponse:
    """List the namespaces in `parent`, or at the top level if it is absent or empty (Iceberg REST specification)."""
    warehouse, above = ctx.ref(WarehouseRef), ctx.query("parent")
    parent = NamespaceRef(warehouse.warehouse_id, Namespace.parse(above)) if above else warehouse
    return await ctx.services.namespaces.list(await ctx.admit(await ctx.read(ListNamespaces, parent=parent)))


async def replay_create(ctx: Ctx, recorded_success: RecordedSuccess) -> NamespaceResponse:
    """Return the current namespace."""
    namespace = (await ctx.body(CreateNamespaceRequest)).identifier
    ref = NamespaceRef(ctx.ref(WarehouseRef).warehouse_id, namespace)
    return await ctx.services.namespaces.load(await ctx.admit(LoadNamespace(ref)))


async def replay_update(ctx: Ctx, recorded_success: RecordedSuccess) -> UpdateNamespacePropertiesResponse:
    """Return the recorded names of changed properties, if the caller still has the right to change them."""
    permit = await ctx.admit(await ctx.read(UpdateNamespaceProperties))
    return await ctx.services.namespaces.repeat_update(permit, recorded_success)


serve(CreateNamespace, Namespaces.create, replay=replay_create)
serve(LoadNamespace, Namespaces.load)
serve(NamespaceExists, Namespaces.exists)
serve(DropNamespace, Namespaces.drop)
serve(UpdateNamespaceProperties, Namespaces.update_properties, replay=replay_update)
