# SPDX-License-Identifier: Apache-2.0
"""Endpoints for storage credentials, remote signing, and the list of live credentials."""

from __future__ import annotations

from litestar import Response

from gateway.access.nouns.refs import TableRef
from gateway.access.operations.credentials import (
    SignCreation,
    SignRequest,
    SignWrite,
    VendCreationCredentials,
    VendCredentials,
    VendStagedCredentials,
    sign_operation,
)
from gateway.access.operations.live_credentials import (
    LIST_TABULAR_LIVE_CREDENTIALS,
    ListPrincipalLiveCredentials,
    ListWarehouseLiveCredentials,
)
from gateway.access.request import Query
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.features.credentials.credentials import Credentials
from gateway.features.credentials.signing import Signing
from gateway.features.live_credentials.live_credentials import LiveCredentials
from gateway.iceberg.wire import LoadCredentialsResponse, RemoteSignRequest, RemoteSignResult


@serves(VendCredentials, reads=(Query("referenced-by"),))
async def vend_credentials(ctx: Ctx) -> LoadCredentialsResponse:
    """Vend fresh credentials for a table."""
    await ctx.pass_through_views()
    return await ctx.use(Credentials).vend(await ctx.admit(await ctx.read(VendCredentials)))


@serves(VendStagedCredentials)
async def vend_staged_credentials(ctx: Ctx) -> LoadCredentialsResponse:
    """Vend fresh credentials to the creator of a table, before and after the table is committed."""
    operation = await ctx.read(VendStagedCredentials)
    staged = await ctx.use(Credentials).vend_staged(await ctx.admit(operation))
    return await ctx.use(Credentials).vend(await ctx.admit(operation.of_table())) if staged is None else staged


serve(ListPrincipalLiveCredentials, LiveCredentials.of_principal)
serve(ListWarehouseLiveCredentials, LiveCredentials.in_warehouse)
for listing in LIST_TABULAR_LIVE_CREDENTIALS:
    serve(listing, LiveCredentials.of_tabular)


@serves(SignRequest, SignWrite)
async def sign_request(ctx: Ctx) -> Response[RemoteSignResult]:
    """Sign a request to the store of a table."""
    return await _sign(ctx, sign_operation(ctx.ref(TableRef), await ctx.body(RemoteSignRequest)))


@serves(SignCreation)
async def sign_creation(ctx: Ctx) -> Response[RemoteSignResult]:
    """Sign a request for the creator of a table, before and after the table is committed."""
    operation = await ctx.read(SignCreation)
    keys = VendCreationCredentials(operation.namespace, operation.table, signing=True)
    signed = await ctx.use(Signing).sign_staged(*await ctx.admit_with(operation, keys))
    if signed is None:
        return await _sign(ctx, operation.of_table())
    return _response(signed)


async def _sign(ctx: Ctx, operation: SignRequest | SignWrite) -> Response[RemoteSignResult]:
    permit, keys = await ctx.admit_with(operation, VendCredentials(operation.table, signing=True))
    return _response(await ctx.use(Signing).sign(permit, keys))


def _response(signed: RemoteSignResult) -> Response[RemoteSignResult]:
    # A cacheable response is kept by Java clients for 30 seconds, in a cache that all users of one process share.
    return Response(signed, headers={"Cache-Control": "no-store"})
