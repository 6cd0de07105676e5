# SPDX-License-Identifier: Apache-2.0
"""Credential endpoints of the catalog protocol."""

from __future__ import annotations

from gateway.access.operations.credentials import SignRequest, VendCredentials
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.iceberg.errors import UnsupportedOperationException
from gateway.iceberg.wire import LoadCredentialsResponse


@serves(VendCredentials)
async def vend_credentials(ctx: Ctx, prefix: str, namespace: str, table: str) -> LoadCredentialsResponse:
    """Fresh credentials for a table."""
    await ctx.come_through(prefix)
    return await ctx.parts.credentials.vend(await ctx.admit(VendCredentials(ctx.table(prefix, namespace, table))))


@serves(SignRequest)
async def sign_request(ctx: Ctx, prefix: str, namespace: str, table: str) -> None:
    """Not supported; the configuration does not offer it."""
    await ctx.admit(SignRequest(ctx.table(prefix, namespace, table)))
    raise UnsupportedOperationException("Remote signing is not supported by this server.")
