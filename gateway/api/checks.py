# SPDX-License-Identifier: Apache-2.0
"""Asking what somebody may do."""

from __future__ import annotations

from gateway.access.operations.checks import BatchCheck, CheckPermission
from gateway.access.request import Body
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.governance.check_requests import parse_batch, parse_check
from gateway.protocol.checks import BatchCheckAnswer, BatchCheckRequest, CheckAnswer, CheckRequest


@serves(CheckPermission, reads=(Body(CheckRequest),))
async def check_permission(ctx: Ctx) -> CheckAnswer:
    """Whether the caller, or somebody else, has a right."""
    request = await ctx.body(CheckRequest)
    operation = parse_check(request, caller=ctx.actor, default_project_id=ctx.parts.default_project_id)
    return await ctx.parts.checks.check(await ctx.admit(operation))


@serves(BatchCheck, reads=(Body(BatchCheckRequest),))
async def batch_check(ctx: Ctx) -> BatchCheckAnswer:
    """Many such questions at once."""
    request = await ctx.body(BatchCheckRequest)
    operation = parse_batch(request, caller=ctx.actor, default_project_id=ctx.parts.default_project_id)
    answer = await ctx.parts.checks.batch(await ctx.admit(operation))
    if operation.delegated and any(each.principal is not None for each in operation.checks):
        # It would have been refused to a caller that is an inspector nowhere.
        ctx.recognize_engine()
    return answer
