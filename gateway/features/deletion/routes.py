# SPDX-License-Identifier: Apache-2.0
"""Endpoints for dropped tables and views that can be restored, and for drop protection.

A protected object can be dropped only with `force`.
"""

from __future__ import annotations

from gateway.access.nouns.refs import ObjectType, WarehouseRef
from gateway.access.operations.deletion import (
    GET_PROTECTION,
    SET_PROTECTION,
    ListDeletedTabulars,
    UndropRequest,
    UndropTabulars,
    kept,
)
from gateway.access.request import Body
from gateway.api.context import Ctx
from gateway.api.serves import replay_by, serve, serves
from gateway.features.deletion.deleted import DeletedTables
from gateway.features.deletion.drops import Protection

serve(ListDeletedTabulars, DeletedTables.list)


@serves(UndropTabulars, reads=(Body(UndropRequest),))
async def undrop_tabulars(ctx: Ctx) -> None:
    """Restore tables, views and generic tables."""
    warehouse, request = ctx.ref(WarehouseRef), await ctx.body(UndropRequest)
    targets = tuple(
        kept(ObjectType(each.type.replace("-", "_")), warehouse.warehouse_id, each.id)
        for each in dict.fromkeys(request.targets)
    )
    await ctx.use(DeletedTables).undrop(await ctx.admit(UndropTabulars(warehouse, targets)))


for reading, setting in zip(GET_PROTECTION, SET_PROTECTION, strict=True):
    serve(reading, Protection.get)
    serve(setting, Protection.set, replay=replay_by(reading, Protection.get))
