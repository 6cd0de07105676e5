# SPDX-License-Identifier: Apache-2.0
"""Endpoints of remote signing."""

from __future__ import annotations

from litestar import Response

from gateway.access.operations.credentials import VendCreationCredentials, VendCredentials
from gateway.access.operations.signing import SignCreation, SignRequest, SignWrite, sign_operation
from gateway.access.refs import TableRef
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.iceberg.wire import RemoteSignRequest, RemoteSignResult


@serves(SignRequest, SignWrite)
async def sign_request(ctx: Ctx) -> Response[RemoteSignResult]:
    """Sign a request to the store of a table."""
    return await _sign(ctx, sign_operation(ctx.ref(TableRef), await ctx.body(RemoteSignRequest)))


@serves(SignCreation)
async def sign_creation(ctx: Ctx) -> Response[RemoteSignResult]:
    """Sign a request for the creator of a table, before and after the table is committed."""
    operation = await ctx.read(SignCreation)
    keys = VendCreationCredentials(operation.namespace, operation.table, signing=True)
    signed = await ctx.services.signing.sign_staged(*await ctx.admit_with(operation, keys))
    if signed is None:
        return await _sign(ctx, operation.of_table())
    return _response(signed)


async def _sign(ctx: Ctx, operation: SignRequest | SignWrite) -> Response[RemoteSignResult]:
    permit, keys = await ctx.admit_with(operation, VendCredentials(operation.table, signing=True))
    return _response(await ctx.services.signing.sign(permit, keys))


def _response(signed: RemoteSignResult) -> Response[RemoteSignResult]:
    # Java clients keep what they may cache for 30 seconds, in a cache that all users of one process share.
    return Response(signed, headers={"Cache-Control": "no-store"})
