# SPDX-License-Identifier: Apache-2.0
"""Credential endpoints of the catalog protocol."""

from __future__ import annotations

from gateway.access.operations.credentials import SignRequest, VendCredentials
from gateway.access.request import Query
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.iceberg.errors import UnsupportedOperationException
from gateway.iceberg.wire import LoadCredentialsResponse


@serves(VendCredentials, reads=(Query("referenced-by"),))
async def vend_credentials(ctx: Ctx) -> LoadCredentialsResponse:
    """Vend fresh credentials for a table."""
    await ctx.pass_through_views()
    return await ctx.services.credentials.vend(await ctx.admit(await ctx.read(VendCredentials)))


@serves(SignRequest)
async def sign_request(ctx: Ctx) -> None:
    """Raise 406: remote signing is not supported."""
    await ctx.admit(await ctx.read(SignRequest))
    raise UnsupportedOperationException("Remote signing is not supported by this server.")
