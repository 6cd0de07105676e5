# SPDX-License-Identifier: Apache-2.0
"""Answer access evaluations of policy enforcement points with the decision that the subject itself would get."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

from gateway.access.actor import Actor
from gateway.access.decisions.hypothetical_checks import HypotheticalChecks
from gateway.access.decisions.hypothetical_evaluation import HypotheticalCheck
from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.resolved import Resolution
from gateway.access.operation import Operation
from gateway.access.operations.authzen import AccessEvaluation, AccessQuestion, rights_to_ask
from gateway.access.principals import actor_of
from gateway.access.tuples import Principal
from gateway.features.grants.partial_checks import CONCERNS_DATA
from gateway.features.kit import UseCases


class AccessEvaluations(UseCases):
    """Use cases of `POST /access/v1/evaluation` and `/access/v1/evaluations`."""

    async def evaluate(self, permit: Permit[AccessEvaluation]) -> list[bool]:
        """Return the decision on each question, in order.

        It is no for a question that the caller may not ask, as for an absent object.
        """
        asked = permit.operation.asked
        answerable = [may_ask(permit, each.principal, each.on) for each in asked]
        some = list(compress(asked, answerable))
        decisions = iter(await decide(self._door.hypothetical_checks, permit, some, permit.resolution))
        return [is_answerable and next(decisions) for is_answerable in answerable]


def may_ask(permit: Permit[Operation], principal: Principal | None, on: Ref) -> bool:
    """Return whether the caller may learn the rights of this principal on an object. None is the caller."""
    return principal is None or any(permit.holds(demand.relation, demand.on) for demand in rights_to_ask(on))


async def decide(
    checks: HypotheticalChecks, permit: Permit[Operation], asked: Sequence[AccessQuestion], resolution: Resolution
) -> list[bool]:
    """Return the decision on each question, in order. `resolution` has the rows of their objects.

    Reading is a no where a row filter, a mask or a column grant leaves a part of the data: the enforcement point could
    not apply it. Call it only for questions that the caller may ask.
    """
    if not asked:
        return []
    hypothetical = [
        HypotheticalCheck(_about(each.principal, permit.actor), each.relation, each.on, asserted=each.asserted)
        for each in asked
    ]
    decisions = await checks.evaluate(permit, hypothetical, resolution=resolution)
    data = [index for index, each in enumerate(hypothetical) if decisions[index] and each.relation in CONCERNS_DATA]
    about = [(hypothetical[index].actor, hypothetical[index].on, ()) for index in data]
    for index, verdict in zip(data, await checks.policy_verdicts(permit, about, resolution=resolution), strict=True):
        decisions[index] = verdict is None or not verdict.restricts
    return decisions


def _about(principal: Principal | None, caller: Actor) -> Actor:
    return caller if principal is None else actor_of(principal)
