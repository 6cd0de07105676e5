# SPDX-License-Identifier: Apache-2.0
"""Query both decision engines concurrently: OpenFGA about relationships, OPA about the circumstances of the request.

An error of either engine is raised. It is never turned into a result.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime

from gateway.access.actor import Actor
from gateway.access.decisions.decision import DelegationRefusal, DemandAnswer
from gateway.access.decisions.delegation import delegation_refusals
from gateway.access.decisions.policy import PolicyActor, PolicyAnswer, PolicyContext, PolicyQuestion, PolicyRequest
from gateway.access.demand import Demand
from gateway.access.dependency_errors import DecisionEngineUnavailable, first_of
from gateway.access.door.questions import answer_of, pin_of, questions_of
from gateway.access.door.request_context import RequestContext
from gateway.access.nouns.describe import describe_for_policy
from gateway.access.nouns.resolved import Resolution
from gateway.access.operation import Operation
from gateway.access.ports import Observer, Pin, Policies, Question, Relationships
from gateway.iceberg.errors import CatalogError
from gateway.spans import spanned


class Engines:
    """Calls OpenFGA and OPA, which decide together. Each question gets one result, or the call raises an error."""

    def __init__(self, relationships: Relationships, policies: Policies, observer: Observer) -> None:
        self._relationships = relationships
        self._policies = policies
        self._observer = observer

    @spanned("openfga.check", lambda _self, _actor, questions, *_, **__: {"lakegate.questions": len(questions)})
    async def check(
        self, actor: Actor, questions: Sequence[Question], now: datetime, pin: Pin | None, *, paced: bool = True
    ) -> list[bool]:
        """Return the results of OpenFGA alone.

        Each result other than `True` becomes False. Raises DecisionEngineUnavailable.
        """
        answers = await self._relationships.check(actor, questions, now=now, pin=pin, paced=paced)
        if len(answers) != len(questions):
            raise DecisionEngineUnavailable("OpenFGA returned another number of answers than questions were sent")
        return [answer is True for answer in answers]

    @spanned("opa.decide")
    async def allowed(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        """Return the results of OPA alone. Raises DecisionEngineUnavailable."""
        answers = await self._policies.decide(request)
        if len(answers) != len(request.questions):
            raise DecisionEngineUnavailable("OPA returned another number of answers than questions were sent")
        return answers

    async def judge(
        self,
        context: RequestContext,
        operations: Sequence[Operation],
        demands: Sequence[Sequence[Demand]],
        policy_questions: Sequence[PolicyQuestion],
        resolution: Resolution,
    ) -> list[tuple[list[DemandAnswer], PolicyAnswer, DelegationRefusal | None]]:
        """Return, for each operation, the results of its `demands`, the result of the policies to its question, and the
        delegation's refusal.

        The last is the reason why the engine may not act for the caller, or None. Raises CatalogError for a request
        that OpenFGA cannot represent; this error has precedence. Raises DecisionEngineUnavailable if an engine does not
        respond.
        """
        engine_outage: DecisionEngineUnavailable | None = None
        refusal: CatalogError | None = None
        try:
            async with asyncio.TaskGroup() as both:
                holding = both.create_task(self._related(resolution.acting(context.actor), demands, resolution))
                delegating = both.create_task(delegation_refusals(self.check, context, operations, resolution))
                allowing = both.create_task(self._allowed(context, policy_questions, resolution))
        except* DecisionEngineUnavailable as outage:
            engine_outage = first_of(outage)
        except* CatalogError as refused:
            refusal = first_of(refused)
        if refusal is not None:
            raise refusal
        if engine_outage is not None:
            raise engine_outage
        return list(zip(holding.result(), allowing.result(), delegating.result(), strict=True))

    async def _related(
        self, actor: Actor, demands: Sequence[Sequence[Demand]], resolution: Resolution
    ) -> list[list[DemandAnswer]]:
        questions: dict[Question, None] = {}
        for some in demands:
            for demand in some:
                questions.update(dict.fromkeys(questions_of(demand, resolution)))
        ordered = list(questions)
        started = time.perf_counter()
        answers = await self.check(actor, ordered, resolution.now, pin_of(resolution)) if ordered else []
        self._observer.decision_took("openfga", time.perf_counter() - started)
        yes = {question for question, answer in zip(ordered, answers, strict=True) if answer}
        return [[answer_of(demand, resolution, yes) for demand in some] for some in demands]

    async def _allowed(
        self, context: RequestContext, questions: Sequence[PolicyQuestion], resolution: Resolution
    ) -> tuple[PolicyAnswer, ...]:
        request = PolicyRequest(
            actor=PolicyActor.of(context.actor, resolution.caller_roles),
            context=PolicyContext.at(
                resolution.now,
                request_id=context.request_id,
                user_agent=context.user_agent,
                client_address=context.client_address,
            ),
            questions=tuple(questions),
        )
        started = time.perf_counter()
        answers = await self.allowed(request)
        self._observer.decision_took("opa", time.perf_counter() - started)
        return answers


def policy_question(operation: Operation, resolution: Resolution) -> PolicyQuestion:
    """Return the question to the policies about an operation."""
    return PolicyQuestion(
        operation=operation.name(),
        resource=describe_for_policy(operation, resolution),
        facts=dict(operation.facts()),
    )
