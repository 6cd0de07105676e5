# SPDX-License-Identifier: Apache-2.0
"""View endpoints of the catalog protocol."""

from __future__ import annotations

from gateway.access.operations.views import CommitView, CreateView, DropView, ListViews, LoadView, ViewExists
from gateway.access.repetition import Remembered
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.iceberg.wire import CommitViewRequest, CreateViewRequest, ListTablesResponse, LoadViewResult


@serves(ListViews)
async def list_views(ctx: Ctx, prefix: str, namespace: str) -> ListTablesResponse:
    """The views of a namespace that the caller sees."""
    token, size = ctx.page()
    operation = ListViews(
        ctx.namespace(prefix, namespace),
        token,
        size,
        return_uuids=ctx.flag("returnUuids", False),
        return_protection_status=ctx.flag("returnProtectionStatus", False),
    )
    return await ctx.parts.views.list(await ctx.admit(operation))


async def repeat_create(ctx: Ctx, remembered: Remembered, prefix: str, namespace: str) -> LoadViewResult:
    """The view as it is now."""
    name = (await ctx.body(CreateViewRequest)).name
    return await ctx.parts.views.load(await ctx.admit(LoadView(ctx.view(prefix, namespace, name))))


async def repeat_commit(ctx: Ctx, remembered: Remembered, prefix: str, namespace: str, view: str) -> LoadViewResult:
    """The view as it is now."""
    return await ctx.parts.views.load(await ctx.admit(LoadView(ctx.view(prefix, namespace, view))))


@serves(CreateView, repeat=repeat_create)
async def create_view(ctx: Ctx, prefix: str, namespace: str) -> LoadViewResult:
    """Create a view."""
    request = await ctx.body(CreateViewRequest)
    return await ctx.parts.views.create(await ctx.admit(CreateView(ctx.namespace(prefix, namespace), request)))


@serves(LoadView)
async def load_view(ctx: Ctx, prefix: str, namespace: str, view: str) -> LoadViewResult:
    """Load a view."""
    await ctx.come_through(prefix)
    return await ctx.parts.views.load(await ctx.admit(LoadView(ctx.view(prefix, namespace, view))))


@serves(ViewExists)
async def view_exists(ctx: Ctx, prefix: str, namespace: str, view: str) -> None:
    """204 when it exists and is visible."""
    await ctx.parts.views.exists(await ctx.admit(ViewExists(ctx.view(prefix, namespace, view))))


@serves(CommitView, repeat=repeat_commit)
async def commit_view(ctx: Ctx, prefix: str, namespace: str, view: str) -> LoadViewResult:
    """Replace or change a view."""
    request = await ctx.body(CommitViewRequest)
    return await ctx.parts.views.commit(await ctx.admit(CommitView(ctx.view(prefix, namespace, view), request)))


@serves(DropView)
async def drop_view(ctx: Ctx, prefix: str, namespace: str, view: str) -> None:
    """Drop a view; its files go when the clean-up window is over, or as `purgeRequested` says."""
    purge = None if ctx.query("purgeRequested") is None else ctx.flag("purgeRequested", True)
    operation = DropView(ctx.view(prefix, namespace, view), purge, ctx.flag("force", False))
    await ctx.parts.views.drop(await ctx.admit(operation))
