# SPDX-License-Identifier: Apache-2.0
"""The endpoint of the catalog protocol that refreshes credentials."""

from __future__ import annotations

from gateway.access.operations.credentials import VendCredentials, VendStagedCredentials
from gateway.access.request import Query
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.iceberg.wire import LoadCredentialsResponse


@serves(VendCredentials, reads=(Query("referenced-by"),))
async def vend_credentials(ctx: Ctx) -> LoadCredentialsResponse:
    """Vend fresh credentials for a table."""
    await ctx.pass_through_views()
    return await ctx.services.credentials.vend(await ctx.admit(await ctx.read(VendCredentials)))


@serves(VendStagedCredentials)
async def vend_staged_credentials(ctx: Ctx) -> LoadCredentialsResponse:
    """Vend fresh credentials to the creator of a table, before and after the table is committed."""
    operation = await ctx.read(VendStagedCredentials)
    staged = await ctx.services.credentials.vend_staged(await ctx.admit(operation))
    return await ctx.services.credentials.vend(await ctx.admit(operation.of_table())) if staged is None else staged
