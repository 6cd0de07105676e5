# SPDX-License-Identifier: Apache-2.0
"""Endpoints for answers about access."""

from __future__ import annotations

from gateway.access.operations.answer_lists import WhoCan, WhoCanAnswer, WhoCanRequest
from gateway.access.request import Body
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.features.answers.who_can import WhoCanLists
from gateway.features.grants.check_requests import parse_action, parse_object


@serves(WhoCan, reads=(Body(WhoCanRequest),))
async def who_can(ctx: Ctx) -> WhoCanAnswer:
    """List the principals that may take an action on an object."""
    request = await ctx.body(WhoCanRequest)
    on = parse_object("object", request.object, ctx.services.default_project_id)
    operation = WhoCan(
        on,
        parse_action(request.action, on.type),
        expand=request.expand,
        page_token=request.page_token,
        page_size=request.page_size,
    )
    return await ctx.use(WhoCanLists).who_can(await ctx.admit(operation))
