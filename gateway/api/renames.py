# SPDX-License-Identifier: Apache-2.0
"""Rename endpoints of the catalog protocol."""

from __future__ import annotations

from gateway.access.operations.renames import RenameTable, RenameView
from gateway.access.refs import TableRef, ViewRef
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.iceberg.wire import RenameRequest


@serves(RenameTable)
async def rename_table(ctx: Ctx, prefix: str) -> None:
    """Rename a table, into another namespace too."""
    request = await ctx.body(RenameRequest)
    source = TableRef(ctx.warehouse(prefix).warehouse_id, request.source.identifier)
    await ctx.parts.renames.table(await ctx.admit(RenameTable(source, request.destination.identifier)))


@serves(RenameView)
async def rename_view(ctx: Ctx, prefix: str) -> None:
    """Rename a view, into another namespace too."""
    request = await ctx.body(RenameRequest)
    source = ViewRef(ctx.warehouse(prefix).warehouse_id, request.source.identifier)
    await ctx.parts.renames.view(await ctx.admit(RenameView(source, request.destination.identifier)))
