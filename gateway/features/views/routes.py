# SPDX-License-Identifier: Apache-2.0
"""View endpoints of the catalog protocol."""

from __future__ import annotations

from litestar import Response

from gateway.access.idempotency import RecordedSuccess
from gateway.access.nouns.refs import NamespaceRef, TabularRef, View
from gateway.access.operations.views import CommitView, CreateView, DropView, ListViews, LoadView, ViewExists
from gateway.access.request import Query
from gateway.api.answers import dropped_object
from gateway.api.context import Ctx
from gateway.api.serves import replay_by, serve, serves
from gateway.features.views.view_commits import ViewCommits
from gateway.features.views.views import Views
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.wire import CreateViewRequest, LoadViewResult


async def replay_create(ctx: Ctx, recorded_success: RecordedSuccess) -> LoadViewResult:
    """Return the current view."""
    namespace, name = ctx.ref(NamespaceRef), (await ctx.body(CreateViewRequest)).name
    view = TabularRef(View, namespace.warehouse_id, TableIdentifier(namespace.namespace, name))
    return await ctx.use(Views).load(await ctx.admit(LoadView(view)))


@serves(LoadView, reads=(Query("referenced-by"),))
async def load_view(ctx: Ctx) -> LoadViewResult:
    """Load a view."""
    await ctx.pass_through_views()
    return await ctx.use(Views).load(await ctx.admit(await ctx.read(LoadView)))


serve(ListViews, Views.list)
serve(CreateView, Views.create, replay=replay_create)
serve(ViewExists, Views.exists)
serve(CommitView, ViewCommits.commit, replay=replay_by(LoadView, Views.load))


@serves(DropView)
async def drop_view(ctx: Ctx) -> Response[None]:
    """Drop a view. A header states what happens to its files."""
    return dropped_object(await ctx.use(Views).drop(await ctx.admit(await ctx.read(DropView))))
