# SPDX-License-Identifier: Apache-2.0
"""Name on each row of an answer what would limit the principal: guardrails, and data policies on the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.access.decisions.hypothetical_checks import HypotheticalChecks
from gateway.access.decisions.hypothetical_evaluation import HypotheticalCheck
from gateway.access.decisions.policy import PolicyAnswer
from gateway.access.door.permit import Permit
from gateway.access.operations.answer_lists import RowLimits, WhoCan, WhoCanRow
from gateway.access.operations.answers import PolicyReason
from gateway.access.principals import actor_of
from gateway.access.restrictions.bound_restrictions import PolicyVerdict
from gateway.access.tuples import Principal
from gateway.features.grants.partial_checks import CONCERNS_DATA
from gateway.obligations.guardrail_policies import policies_of

_UNSTATED: Final = PolicyReason(code="unstated", message="a guardrail denies the action and states no reason")


async def limited(
    decisions: HypotheticalChecks, permit: Permit[WhoCan], principals: Sequence[Principal], rows: Sequence[WhoCanRow]
) -> list[WhoCanRow]:
    """Return the rows, one for each principal, with what limits the action for it."""
    on, action = permit.operation.on, permit.operation.action
    checks = [HypotheticalCheck(actor_of(each), action, on) for each in principals]
    answers = await decisions.policies(permit, checks)
    verdicts: list[PolicyVerdict | None] = [None] * len(rows)
    if action in CONCERNS_DATA:
        stated = [
            (check.actor, on, policies_of(answer.obligations)) for check, answer in zip(checks, answers, strict=True)
        ]
        verdicts = await decisions.policy_verdicts(permit, stated)
    return [
        msgspec.structs.replace(row, limits=_limits(answer, verdict))
        for row, answer, verdict in zip(rows, answers, verdicts, strict=True)
    ]


def _limits(answer: PolicyAnswer, verdict: PolicyVerdict | None) -> RowLimits | None:
    reasons = [PolicyReason(code=each.code, message=each.message) for each in answer.reasons]
    found = RowLimits(
        denied=[] if answer.allow else reasons or [_UNSTATED],
        obligations=dict(answer.obligations.audited()),
        restricted=verdict is not None and verdict.restricts,
    )
    return None if found == RowLimits() else found
