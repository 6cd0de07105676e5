# SPDX-License-Identifier: Apache-2.0
"""Moving namespaces, an endpoint of the management API."""

from __future__ import annotations

from gateway.access.operations.namespace_moves import MoveNamespace
from gateway.access.repetition import Remembered
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.iceberg.identifiers import Namespace
from gateway.protocol.namespaces import MovedNamespace, MoveNamespaceRequest


async def repeat_move(ctx: Ctx, remembered: Remembered) -> MovedNamespace:
    """Where it lies now."""
    return await ctx.parts.namespace_moves.repeat(await ctx.admit(await _asked(ctx)))


@serves(MoveNamespace, repeat=repeat_move)
async def move_namespace(ctx: Ctx) -> MovedNamespace:
    """Another parent or another name for a namespace and all that lies in it."""
    return await ctx.parts.namespace_moves.move(await ctx.admit(await _asked(ctx)))


async def _asked(ctx: Ctx) -> MoveNamespace:
    request = await ctx.body(MoveNamespaceRequest)
    destination = Namespace(request.destination)
    return MoveNamespace(targets.warehouse(ctx), targets.namespace_within(ctx), destination, request.force)
