# SPDX-License-Identifier: Apache-2.0
"""Statistics of endpoints and warehouses."""

from __future__ import annotations

from gateway.access.operations.statistics import (
    GetEndpointStatistics,
    GetProjectEndpointStatistics,
    GetWarehouseEndpointStatistics,
    GetWarehouseStatistics,
)
from gateway.access.refs import WarehouseRef
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.governance.statistics import hours_of
from gateway.protocol.statistics import (
    EndpointStatistics,
    EndpointStatisticsRequest,
    NoWarehouse,
    OneWarehouse,
    WarehouseStatistics,
)


@serves(GetProjectEndpointStatistics, GetWarehouseEndpointStatistics)
async def get_endpoint_statistics(ctx: Ctx) -> EndpointStatistics:
    """How often endpoints were called, by hour, in a project or in one of its warehouses."""
    request = await ctx.body(EndpointStatisticsRequest)
    hours = (request.status_codes or (), *hours_of(request.range_specifier))
    operation: GetEndpointStatistics
    if isinstance(request.warehouse, OneWarehouse):
        operation = GetWarehouseEndpointStatistics(*hours, WarehouseRef(request.warehouse.id))
    else:
        operation = GetProjectEndpointStatistics(*hours, ctx.project(), isinstance(request.warehouse, NoWarehouse))
    return await ctx.parts.statistics.endpoints(await ctx.admit(operation))


@serves(GetWarehouseStatistics)
async def get_warehouse_statistics(ctx: Ctx) -> WarehouseStatistics:
    """How many tables and views a warehouse had, by hour."""
    token, size = ctx.query("page_token"), ctx.page_size(ctx.query("page_size"))
    operation = GetWarehouseStatistics(targets.warehouse(ctx), token, size)
    return await ctx.parts.statistics.warehouse(await ctx.admit(operation))
