# SPDX-License-Identifier: Apache-2.0
"""Endpoints that check permissions."""

from __future__ import annotations

from gateway.access.operations.checks import BatchCheck, CheckPermission
from gateway.access.request import Body
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.governance.check_requests import add_unknown, parse_batch, parse_check
from gateway.protocol.checks import BatchCheckAnswer, BatchCheckRequest, CheckAnswer, CheckRequest


@serves(CheckPermission, reads=(Body(CheckRequest),))
async def check_permission(ctx: Ctx) -> CheckAnswer:
    """Check a permission of the caller, or of another principal."""
    request = await ctx.body(CheckRequest)
    operation = parse_check(request, caller=ctx.actor, default_project_id=ctx.services.default_project_id)
    return await ctx.services.checks.check(await ctx.admit(operation))


@serves(BatchCheck, reads=(Body(BatchCheckRequest),))
async def batch_check(ctx: Ctx) -> BatchCheckAnswer:
    """Check many permissions in one request."""
    request = await ctx.body(BatchCheckRequest)
    operation, is_known = parse_batch(request, caller=ctx.actor, default_project_id=ctx.services.default_project_id)
    answer = await ctx.services.checks.batch(await ctx.admit(operation))
    if operation.delegated and any(each.principal is not None for each in operation.checks):
        # `Checks.batch` raises CannotInspectPermissions unless the caller is an inspector or a delegate somewhere.
        ctx.recognize_engine()
    return add_unknown(answer, request.checks, is_known)
