# SPDX-License-Identifier: Apache-2.0
"""Endpoints of what was dropped and can be restored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from gateway.access.operations.deleted import Kept, ListDeletedTabulars, UndropTabulars
from gateway.access.refs import KeptGenericTableRef, KeptTableRef, KeptViewRef, WarehouseRef
from gateway.access.request import Body
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.catalog.deleted import DeletedTables
from gateway.protocol.deleted import UndropRequest

_KEPT: Mapping[str, Callable[[UUID, UUID], Kept]] = {
    "table": KeptTableRef,
    "view": KeptViewRef,
    "generic-table": KeptGenericTableRef,
}


serve(ListDeletedTabulars, DeletedTables.list)


@serves(UndropTabulars, reads=(Body(UndropRequest),))
async def undrop_tabulars(ctx: Ctx) -> None:
    """Restore tables, views and generic tables."""
    warehouse, request = ctx.ref(WarehouseRef), await ctx.body(UndropRequest)
    targets = tuple(_KEPT[each.type](warehouse.warehouse_id, each.id) for each in dict.fromkeys(request.targets))
    await ctx.parts.deleted.undrop(await ctx.admit(UndropTabulars(warehouse, targets)))
