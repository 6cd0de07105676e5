# SPDX-License-Identifier: Apache-2.0
"""Endpoints for questions about access."""

from __future__ import annotations

from typing import Final

from gateway.access.nouns.authz_errors import denial_not_found
from gateway.access.operations.answer_lists import (
    WhatCan,
    WhatCanAnswer,
    WhatCanRequest,
    WhoCan,
    WhoCanAnswer,
    WhoCanRequest,
)
from gateway.access.operations.answers import (
    CircumstancesRequest,
    Denial,
    ExplainAccess,
    ExplainDenial,
    ExplainRequest,
    Explanation,
    ReadDenial,
)
from gateway.access.operations.checks import CheckRequest
from gateway.access.principals import other_principal, principal_of
from gateway.access.request import Body
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.features.answers.denials import Denials
from gateway.features.answers.explain import Explanations
from gateway.features.answers.past import PastExplanations
from gateway.features.answers.what_can import WhatCanLists
from gateway.features.answers.who_can import WhoCanLists
from gateway.features.grants.check_requests import parse_action, parse_any_action, parse_check, parse_object
from gateway.iceberg.errors import BadRequestException, CatalogError

#: Policies count the nanoseconds since 1970 in 64 bits, which end in this year.
_LAST_YEAR: Final = 2262


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
        at=request.at,
    )
    return await ctx.use(WhoCanLists).who_can(await ctx.admit(operation))


@serves(ReadDenial, ExplainDenial)
async def read_denial(ctx: Ctx) -> Denial:
    """Find a refused request, and explain the decision. The denial of another principal does not exist for callers that
    may not read its assignments.
    """
    found = await ctx.use(Denials).find(await ctx.admit(await ctx.read(ReadDenial)))
    try:
        permit = await ctx.admit(found)
    except CatalogError as refusal:
        if found.check.principal is not None and refusal.code in (403, 404):
            raise denial_not_found(found.refused.id) from None
        raise
    explanation = await ctx.use(Explanations).explain(permit)
    refused = found.refused
    return Denial(
        id=refused.id,
        at=refused.at,
        operation=refused.operation,
        explanation=explanation,
        reasons=list(refused.reasons),
    )


@serves(ExplainAccess, reads=(Body(ExplainRequest),))
async def explain_access(ctx: Ctx) -> Explanation:
    """Explain why a principal may or may not take an action."""
    request = await ctx.body(ExplainRequest)
    asked = CheckRequest(operation=request.operation, identity=request.identity)
    parsed = parse_check(asked, caller=ctx.actor, default_project_id=ctx.services.default_project_id)
    if parsed.check.append or parsed.check.runs_as_owner or parsed.check.applies_restrictions:
        raise BadRequestException("`append`, `runs-as-owner` and `restrictions` are not possible in an explanation.")
    given = request.circumstances or CircumstancesRequest()
    if request.at is not None and request.circumstances is not None:
        raise BadRequestException("`circumstances` are for policies, which are no part of the answer about `at`.")
    if given.time is not None and not 1970 <= given.time.year < _LAST_YEAR:
        raise BadRequestException(f"`circumstances.time` must be in the years 1970 to {_LAST_YEAR - 1}.")
    permit = await ctx.admit(
        ExplainAccess(parsed.check, given.user_agent, given.client_address, given.time, request.at)
    )
    if request.at is not None:
        return await ctx.use(PastExplanations).explain_at(permit)
    return await ctx.use(Explanations).explain(permit)


@serves(WhatCan, reads=(Body(WhatCanRequest),))
async def what_can(ctx: Ctx) -> WhatCanAnswer:
    """List what a principal may do."""
    request = await ctx.body(WhatCanRequest)
    default = ctx.services.default_project_id
    operation = WhatCan(
        principal=None if request.principal is None else other_principal(principal_of(request.principal), ctx.actor),
        on=None if request.object is None else parse_object("object", request.object, default),
        action=None if request.action is None else parse_any_action(request.action),
        page_token=request.page_token,
        page_size=request.page_size,
        at=request.at,
    )
    return await ctx.use(WhatCanLists).what_can(await ctx.admit(operation))
