# SPDX-License-Identifier: Apache-2.0
"""Endpoints of the AuthZEN Authorization API 1.0, and its discovery document."""

from __future__ import annotations

from gateway.access.operations.authzen import (
    EvaluateAccess,
    EvaluateAccesses,
    GetAuthZenConfiguration,
    SearchActions,
    SearchResources,
    SearchSubjects,
)
from gateway.access.operations.authzen_bodies import (
    ActionSearchRequest,
    AuthZenConfiguration,
    EvaluationAnswer,
    EvaluationRequest,
    EvaluationsAnswer,
    EvaluationsRequest,
    FoundActionsAnswer,
    FoundEntitiesAnswer,
    ResourceSearchRequest,
    SubjectSearchRequest,
)
from gateway.access.request import Body
from gateway.api.context import Ctx
from gateway.api.errors import NoSuchRoute
from gateway.api.serves import serves
from gateway.features.authzen.evaluations import AccessEvaluations
from gateway.features.authzen.requests import Reading
from gateway.features.authzen.searches import AccessSearches


@serves(EvaluateAccess, reads=(Body(EvaluationRequest),))
async def evaluate_access(ctx: Ctx) -> EvaluationAnswer:
    """Return one decision."""
    question = _reading(ctx).question(await ctx.body(EvaluationRequest))
    operation = EvaluateAccess(() if question is None else (question,))
    return EvaluationAnswer(decision=any(await ctx.use(AccessEvaluations).evaluate(await ctx.admit(operation))))


@serves(EvaluateAccesses, reads=(Body(EvaluationsRequest),))
async def evaluate_accesses(ctx: Ctx) -> EvaluationsAnswer:
    """Return several decisions, or one if the request has no list of evaluations."""
    reading = _reading(ctx)
    request = await ctx.body(EvaluationsRequest)
    if not request.evaluations:
        question = reading.question(request)
        only = EvaluateAccesses(() if question is None else (question,))
        return EvaluationsAnswer(decision=any(await ctx.use(AccessEvaluations).evaluate(await ctx.admit(only))))
    batch = reading.batch(request)
    decisions = await ctx.use(AccessEvaluations).evaluate(await ctx.admit(EvaluateAccesses(batch.asked)))
    return EvaluationsAnswer(evaluations=batch.answers(decisions, request.options.evaluations_semantic))


@serves(SearchSubjects, reads=(Body(SubjectSearchRequest),))
async def search_subjects(ctx: Ctx) -> FoundEntitiesAnswer:
    """Return the subjects that may take an action."""
    operation = _reading(ctx).subjects(await ctx.body(SubjectSearchRequest))
    return await ctx.use(AccessSearches).subjects(await ctx.admit(operation))


@serves(SearchResources, reads=(Body(ResourceSearchRequest),))
async def search_resources(ctx: Ctx) -> FoundEntitiesAnswer:
    """Return the resources on which a subject may take an action."""
    operation = _reading(ctx).resources(await ctx.body(ResourceSearchRequest))
    return await ctx.use(AccessSearches).resources(await ctx.admit(operation))


@serves(SearchActions, reads=(Body(ActionSearchRequest),))
async def search_actions(ctx: Ctx) -> FoundActionsAnswer:
    """Return the actions that a subject may take on a resource."""
    operation = _reading(ctx).actions(await ctx.body(ActionSearchRequest))
    return await ctx.use(AccessSearches).actions(await ctx.admit(operation))


@serves(GetAuthZenConfiguration)
async def get_authzen_configuration(ctx: Ctx) -> AuthZenConfiguration:
    """Return the addresses. Raises 404 if the gateway does not know its own address."""
    base = ctx.services.base_uri
    if base is None:
        raise NoSuchRoute("The server has no address for clients. Set LAKEGATE__BASE_URI.")
    own = f"{base.rstrip('/')}/access/v1"
    return AuthZenConfiguration(
        policy_decision_point=base.rstrip("/"),
        access_evaluation_endpoint=f"{own}/evaluation",
        access_evaluations_endpoint=f"{own}/evaluations",
        search_subject_endpoint=f"{own}/search/subject",
        search_resource_endpoint=f"{own}/search/resource",
        search_action_endpoint=f"{own}/search/action",
    )


def _reading(ctx: Ctx) -> Reading:
    """Return the reader of bodies. Raises 400 for another content type than JSON."""
    ctx.require_json()
    return Reading(ctx.services.authzen, ctx.actor)
