# SPDX-License-Identifier: Apache-2.0
"""Both engines, asked at once: OpenFGA who is related to what, OPA under which circumstances (decision 6).

A failure of either is raised; nothing here turns one into an answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime

from gateway.access.actor import Actor
from gateway.access.decision import DemandAnswer
from gateway.access.delegation import questions_to_engine
from gateway.access.demand import Demand
from gateway.access.describe import describe_for_policy
from gateway.access.entrance import Entrance
from gateway.access.operation import HttpOperation, Operation
from gateway.access.operations.passing import ReadThroughView
from gateway.access.outage import DecisionEngineUnavailable, first_of
from gateway.access.policy import PolicyActor, PolicyAnswer, PolicyContext, PolicyQuestion, PolicyRequest
from gateway.access.ports import Observer, Pin, Policies, Question, Relationships
from gateway.access.questions import answer_of, engine_pin_of, pin_of, questions_of
from gateway.access.resolved import Resolution
from gateway.iceberg.errors import CatalogError


class Engines:
    """The two that decide together. One answer per question, or an error."""

    def __init__(self, relationships: Relationships, policies: Policies, observer: Observer) -> None:
        self._relationships = relationships
        self._policies = policies
        self._observer = observer

    async def check(
        self, actor: Actor, questions: Sequence[Question], now: datetime, pin: Pin | None, *, paced: bool = True
    ) -> list[bool]:
        """OpenFGA alone; whatever is not `True` itself is a no. Raises DecisionEngineUnavailable."""
        answers = await self._relationships.check(actor, questions, now=now, pin=pin, paced=paced)
        if len(answers) != len(questions):
            raise DecisionEngineUnavailable("OpenFGA answered another number of questions than were asked")
        return [answer is True for answer in answers]

    async def allowed(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        """OPA alone. Raises DecisionEngineUnavailable."""
        answers = await self._policies.decide(request)
        if len(answers) != len(request.questions):
            raise DecisionEngineUnavailable("OPA answered another number of questions than were asked")
        return answers

    async def ask(
        self,
        entrance: Entrance,
        asked: Sequence[Operation],
        demands: Sequence[Sequence[Demand]],
        resolution: Resolution,
    ) -> list[tuple[list[DemandAnswer], PolicyAnswer, bool]]:
        """What the two say of each operation and its `demands`, and whether who asks in the caller's name may.

        Raises DecisionEngineUnavailable when one of them says nothing, and what the caller sent that cannot even be
        asked (an id OpenFGA has no room for) as it is: a CatalogError, which goes before.
        """
        down: DecisionEngineUnavailable | None = None
        wrong: CatalogError | None = None
        try:
            async with asyncio.TaskGroup() as both:
                holding = both.create_task(self._related(resolution.acting(entrance.actor), demands, resolution))
                delegating = both.create_task(self._delegated(entrance.actor, asked, resolution))
                allowing = both.create_task(self._allowed(entrance, asked, resolution))
        except* DecisionEngineUnavailable as outage:
            down = first_of(outage)
        except* CatalogError as refused:
            wrong = first_of(refused)
        if wrong is not None:
            raise wrong
        if down is not None:
            raise down
        return list(zip(holding.result(), allowing.result(), delegating.result(), strict=True))

    async def _delegated(self, actor: Actor, asked: Sequence[Operation], resolution: Resolution) -> list[bool]:
        """Whether the engine that acts for `actor` holds `delegate` where each operation is; true when nobody does.

        Asked with every use and remembered as everything is, so that it costs a call only when something was revoked.
        """
        engine = actor.engine_itself()
        if engine is None:
            return [True] * len(asked)
        needed = [questions_to_engine(operation, resolution) for operation in asked]
        ordered = list(dict.fromkeys(question for some in needed if some is not None for question in some))
        answers = await self.check(engine, ordered, resolution.now, engine_pin_of(resolution)) if ordered else []
        yes = {question for question, answer in zip(ordered, answers, strict=True) if answer}
        return [
            # Acting as a role, and a success that is told again, give nothing by themselves.
            not isinstance(operation, HttpOperation | ReadThroughView) or (some is not None and yes.issuperset(some))
            for operation, some in zip(asked, needed, strict=True)
        ]

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
        self, entrance: Entrance, asked: Sequence[Operation], resolution: Resolution
    ) -> tuple[PolicyAnswer, ...]:
        request = PolicyRequest(
            actor=PolicyActor.of(entrance.actor, resolution.caller_roles),
            context=PolicyContext.at(
                resolution.now,
                request_id=entrance.request_id,
                user_agent=entrance.user_agent,
                client_address=entrance.client_address,
            ),
            questions=tuple(
                PolicyQuestion(
                    operation=operation.name(),
                    resource=describe_for_policy(operation, resolution),
                    facts=dict(operation.facts()),
                )
                for operation in asked
            ),
        )
        started = time.perf_counter()
        answers = await self.allowed(request)
        self._observer.decision_took("opa", time.perf_counter() - started)
        return answers
