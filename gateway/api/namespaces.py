# SPDX-License-Identifier: Apache-2.0
"""Namespace endpoints of the catalog protocol."""

from __future__ import annotations

from gateway.access.operations.namespaces import (
    CreateNamespace,
    DropNamespace,
    ListNamespaces,
    LoadNamespace,
    NamespaceExists,
    UpdateNamespaceProperties,
)
from gateway.access.refs import NamespaceRef
from gateway.access.repetition import Remembered
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.iceberg.wire import (
    CreateNamespaceRequest,
    ListNamespacesResponse,
    NamespaceResponse,
    UpdateNamespacePropertiesRequest,
    UpdateNamespacePropertiesResponse,
)


@serves(ListNamespaces)
async def list_namespaces(ctx: Ctx, prefix: str) -> ListNamespacesResponse:
    """Direct children of `parent`, or of the warehouse; an empty `parent` counts as none (REST specification)."""
    token, size = ctx.page()
    above = ctx.query("parent")
    parent = ctx.namespace(prefix, above) if above else ctx.warehouse(prefix)
    operation = ListNamespaces(
        parent,
        token,
        size,
        return_uuids=ctx.flag("returnUuids", False),
        return_protection_status=ctx.flag("returnProtectionStatus", False),
    )
    return await ctx.parts.namespaces.list(await ctx.admit(operation))


async def repeat_create(ctx: Ctx, remembered: Remembered, prefix: str) -> NamespaceResponse:
    """The namespace as it is now."""
    namespace = (await ctx.body(CreateNamespaceRequest)).identifier
    ref = NamespaceRef(ctx.warehouse(prefix).warehouse_id, namespace)
    return await ctx.parts.namespaces.load(await ctx.admit(LoadNamespace(ref)))


@serves(CreateNamespace, repeat=repeat_create)
async def create_namespace(ctx: Ctx, prefix: str) -> NamespaceResponse:
    """Create a namespace."""
    request = await ctx.body(CreateNamespaceRequest)
    return await ctx.parts.namespaces.create(await ctx.admit(CreateNamespace(ctx.warehouse(prefix), request)))


@serves(LoadNamespace)
async def load_namespace(ctx: Ctx, prefix: str, namespace: str) -> NamespaceResponse:
    """Load a namespace's properties."""
    return await ctx.parts.namespaces.load(await ctx.admit(LoadNamespace(ctx.namespace(prefix, namespace))))


@serves(NamespaceExists)
async def namespace_exists(ctx: Ctx, prefix: str, namespace: str) -> None:
    """204 when it exists and is visible."""
    await ctx.parts.namespaces.exists(await ctx.admit(NamespaceExists(ctx.namespace(prefix, namespace))))


@serves(DropNamespace)
async def drop_namespace(ctx: Ctx, prefix: str, namespace: str) -> None:
    """Drop an empty namespace, or with `recursive` all that lies in it too."""
    recursive, force, purge = ctx.flag("recursive", False), ctx.flag("force", False), ctx.flag("purge", True)
    operation = DropNamespace(ctx.namespace(prefix, namespace), recursive, force, purge)
    await ctx.parts.namespaces.drop(await ctx.admit(operation))


async def repeat_update(
    ctx: Ctx, remembered: Remembered, prefix: str, namespace: str
) -> UpdateNamespacePropertiesResponse:
    """What was set and removed then, told to who may still do it."""
    request = await ctx.body(UpdateNamespacePropertiesRequest)
    operation = UpdateNamespaceProperties(ctx.namespace(prefix, namespace), request)
    return await ctx.parts.namespaces.repeat_update(await ctx.admit(operation), remembered)


@serves(UpdateNamespaceProperties, repeat=repeat_update)
async def update_namespace_properties(ctx: Ctx, prefix: str, namespace: str) -> UpdateNamespacePropertiesResponse:
    """Set and remove properties."""
    request = await ctx.body(UpdateNamespacePropertiesRequest)
    operation = UpdateNamespaceProperties(ctx.namespace(prefix, namespace), request)
    return await ctx.parts.namespaces.update_properties(await ctx.admit(operation))
