# SPDX-License-Identifier: Apache-2.0
"""The configuration endpoint of the catalog protocol, `GET /catalog/v1/config`."""

from __future__ import annotations

from gateway.access.operations.config import GetConfig
from gateway.access.refs import WarehouseNameRef
from gateway.access.request import Query, RequestProject
from gateway.api.context import Ctx
from gateway.api.endpoints.users import register_caller
from gateway.api.serves import serves
from gateway.iceberg.errors import GetConfigNoWarehouseProvided
from gateway.iceberg.wire import CatalogConfig


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
    return await ctx.services.configurations.get(await ctx.admit(GetConfig(ref)))
