# SPDX-License-Identifier: Apache-2.0
"""Endpoints for statistics of endpoints and warehouses."""

from __future__ import annotations

from gateway.access.operations.statistics import (
    GetEndpointStatistics,
    GetProjectEndpointStatistics,
    GetWarehouseEndpointStatistics,
    GetWarehouseStatistics,
)
from gateway.access.refs import WarehouseRef
from gateway.access.request import Body
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.governance.statistics import Statistics, hours_of
from gateway.protocol.statistics import EndpointStatistics, EndpointStatisticsRequest, NoWarehouse, OneWarehouse


@serves(GetProjectEndpointStatistics, GetWarehouseEndpointStatistics, reads=(Body(EndpointStatisticsRequest),))
async def get_endpoint_statistics(ctx: Ctx) -> EndpointStatistics:
    """Return the number of calls of endpoints by hour, in a project or in one of its warehouses."""
    request = await ctx.body(EndpointStatisticsRequest)
    hours = (request.status_codes or (), *hours_of(request.range_specifier))
    operation: GetEndpointStatistics
    if isinstance(request.warehouse, OneWarehouse):
        operation = GetWarehouseEndpointStatistics(*hours, WarehouseRef(request.warehouse.id))
    else:
        operation = GetProjectEndpointStatistics(*hours, ctx.project(), isinstance(request.warehouse, NoWarehouse))
    return await ctx.services.statistics.endpoints(await ctx.admit(operation))


serve(GetWarehouseStatistics, Statistics.warehouse)
