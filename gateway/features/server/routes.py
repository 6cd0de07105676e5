# SPDX-License-Identifier: Apache-2.0
"""Endpoints for the server, the configuration of clients, statistics and policy bundles."""

from __future__ import annotations

from litestar import Response

from gateway.access.nouns.refs import WarehouseNameRef, WarehouseRef
from gateway.access.operations.policies import GetGuardrails, GetPolicyModel
from gateway.access.operations.server import Bootstrap, GetConfig, GetHealth, GetPolicyBundle, GetServerInfo
from gateway.access.operations.statistics import (
    EndpointStatistics,
    EndpointStatisticsRequest,
    GetEndpointStatistics,
    GetProjectEndpointStatistics,
    GetWarehouseEndpointStatistics,
    GetWarehouseStatistics,
    NoWarehouse,
    OneWarehouse,
)
from gateway.access.request import Body, Header, Query, RequestProject
from gateway.api.answers import cached_file
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.features.metadata import etags
from gateway.features.principals.routes import register_caller
from gateway.features.server.config import Configurations
from gateway.features.server.policy_bundles import PolicyBundles
from gateway.features.server.policy_texts import PolicyTexts
from gateway.features.server.servers import Servers
from gateway.features.statistics.statistics import Statistics, hours_of
from gateway.iceberg.errors import GetConfigNoWarehouseProvided
from gateway.iceberg.wire import CatalogConfig
from gateway.telemetry.health import HealthReport


@serves(GetConfig, reads=(Query("warehouse"), RequestProject()))
async def get_config(ctx: Ctx) -> CatalogConfig:
    """Return the client configuration of the warehouse `<name>` or `<project-id>/<name>`, and register the caller.

    Raises 400 without the query parameter `warehouse`.
    """
    named = ctx.query("warehouse")
    if not named:
        raise GetConfigNoWarehouseProvided(
            "The request names no warehouse. Name one with the query parameter `warehouse`."
        )
    project, slash, name = named.partition("/")
    ref = WarehouseNameRef(project, name) if slash else WarehouseNameRef(ctx.project().project_id, named)
    await register_caller(ctx)
    return await ctx.use(Configurations).get(await ctx.admit(GetConfig(ref)))


serve(GetServerInfo, Servers.info)
serve(Bootstrap, Servers.bootstrap)


@serves(GetHealth)
async def get_health(ctx: Ctx) -> Response[HealthReport]:
    """Return the health report, with status 200 if all dependencies are healthy, else 503."""
    report = ctx.services.health.report()
    return Response(report, status_code=200 if report.healthy else 503, headers={"Cache-Control": "no-store"})


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
    return await ctx.use(Statistics).endpoints(await ctx.admit(operation))


serve(GetWarehouseStatistics, Statistics.warehouse)


@serves(GetPolicyBundle, reads=(Header("if-none-match"),))
async def get_policy_bundle(ctx: Ctx) -> Response[bytes | None]:
    """Return a bundle; 304 if the client has it. Authorization comes first: the tag gives no right."""
    permit = await ctx.admit(await ctx.read(GetPolicyBundle))
    bundle = await ctx.use(PolicyBundles).bundle(permit)
    known = etags.parse_if_none_match(ctx.header("if-none-match"))
    return cached_file(bundle.content, f'"{bundle.entity_tag}"', "application/gzip", known)


serve(GetPolicyModel, PolicyTexts.model)
serve(GetGuardrails, PolicyTexts.guardrails)
