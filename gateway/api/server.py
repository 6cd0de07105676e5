# SPDX-License-Identifier: Apache-2.0
"""Server endpoints of the management API."""

from __future__ import annotations

from gateway.access.operations.server import Bootstrap, GetServerInfo
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.protocol.server import BootstrapRequest, ServerInfo


@serves(GetServerInfo)
async def get_server_info(ctx: Ctx) -> ServerInfo:
    """What this server is."""
    return await ctx.parts.servers.info(await ctx.admit(GetServerInfo()))


@serves(Bootstrap)
async def bootstrap(ctx: Ctx) -> None:
    """Make the caller the first administrator."""
    await ctx.parts.servers.bootstrap(await ctx.admit(Bootstrap(await ctx.body(BootstrapRequest))))
