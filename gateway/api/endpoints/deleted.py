# SPDX-License-Identifier: Apache-2.0
"""Endpoints for dropped tables, views and generic tables that can be restored."""

from __future__ import annotations

from gateway.access.operations.deleted import ListDeletedTabulars, UndropTabulars, kept
from gateway.access.refs import ObjectType, WarehouseRef
from gateway.access.request import Body
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.catalog.deleted import DeletedTables
from gateway.protocol.deleted import UndropRequest

serve(ListDeletedTabulars, DeletedTables.list)


@serves(UndropTabulars, reads=(Body(UndropRequest),))
async def undrop_tabulars(ctx: Ctx) -> None:
    """Restore tables, views and generic tables."""
    warehouse, request = ctx.ref(WarehouseRef), await ctx.body(UndropRequest)
    targets = tuple(
        kept(ObjectType(each.type.replace("-", "_")), warehouse.warehouse_id, each.id)
        for each in dict.fromkeys(request.targets)
    )
    await ctx.services.deleted.undrop(await ctx.admit(UndropTabulars(warehouse, targets)))
