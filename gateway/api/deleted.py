# SPDX-License-Identifier: Apache-2.0
"""What was dropped and can be brought back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from gateway.access.operations.deleted import Kept, ListDeletedTabulars, UndropTabulars
from gateway.access.refs import KeptGenericTableRef, KeptTableRef, KeptViewRef
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.iceberg.errors import BadRequestException
from gateway.protocol.deleted import DeletedTabulars, UndropRequest

_KEPT: Mapping[str, Callable[[UUID, UUID], Kept]] = {
    "table": KeptTableRef,
    "view": KeptViewRef,
    "generic-table": KeptGenericTableRef,
}


@serves(ListDeletedTabulars)
async def list_deleted_tabulars(ctx: Ctx) -> DeletedTabulars:
    """What was dropped in a warehouse."""
    token, size = ctx.page()
    operation = ListDeletedTabulars(targets.warehouse(ctx), _namespace_id(ctx), token, size)
    return await ctx.parts.deleted.list(await ctx.admit(operation))


@serves(UndropTabulars)
async def undrop_tabulars(ctx: Ctx) -> None:
    """Bring tables and views back."""
    warehouse, request = targets.warehouse(ctx), await ctx.body(UndropRequest)
    wanted = tuple(_KEPT[each.type](warehouse.warehouse_id, each.id) for each in dict.fromkeys(request.targets))
    await ctx.parts.deleted.undrop(await ctx.admit(UndropTabulars(warehouse, wanted)))


def _namespace_id(ctx: Ctx) -> UUID | None:
    text = ctx.query("namespaceId")
    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise BadRequestException("namespaceId is not a UUID.") from None
