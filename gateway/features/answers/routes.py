# SPDX-License-Identifier: Apache-2.0
"""Endpoints for questions about access."""

from __future__ import annotations

from gateway.access.operations.answer_lists import WhoCan, WhoCanAnswer, WhoCanRequest
from gateway.access.operations.answers import CircumstancesRequest, ExplainAccess, ExplainRequest, Explanation
from gateway.access.operations.checks import CheckRequest
from gateway.access.request import Body
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.features.answers.explain import Explanations
from gateway.features.answers.who_can import WhoCanLists
from gateway.features.grants.check_requests import parse_action, parse_check, parse_object


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


@serves(ExplainAccess, reads=(Body(ExplainRequest),))
async def explain_access(ctx: Ctx) -> Explanation:
    """Explain why a principal may or may not take an action."""
    request = await ctx.body(ExplainRequest)
    asked = CheckRequest(operation=request.operation, identity=request.identity)
    parsed = parse_check(asked, caller=ctx.actor, default_project_id=ctx.services.default_project_id)
    given = request.circumstances or CircumstancesRequest()
    operation = ExplainAccess(parsed.check, given.user_agent, given.client_address)
    return await ctx.use(Explanations).explain(await ctx.admit(operation))
