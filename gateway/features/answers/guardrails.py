# SPDX-License-Identifier: Apache-2.0
"""Present the part of a decision that guardrails made, from OPA's answer and its trace. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.access.decisions.policy import PolicyAnswers, PolicyContext, PolicyRequest
from gateway.access.operations.answers import LiftingInput, PoliciesAnswer, PolicyReason, PolicyRule
from gateway.opa.rule_hits import FACTS, PolicyTrace

#: The parts of a request's circumstances that are unknown without the request.
_CIRCUMSTANCES: Final = {
    "context.user_agent": lambda context: context.user_agent,
    "context.client_address": lambda context: context.client_address,
}


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """A request to OPA with one question, the answer, its trace, and what would lift a denial.

    Without `reads_policies` the caller may not read the policies.
    """

    request: PolicyRequest
    answers: PolicyAnswers
    trace: PolicyTrace
    lifts: Sequence[LiftingInput]
    reads_policies: bool


def policies_answer(traced: TracedRequest) -> PoliciesAnswer:
    """Return the guardrails' part of a decision. Rules and inputs are left out for callers that may not read them."""
    (policy,), trace, (question,) = traced.answers.decisions, traced.trace, traced.request.questions
    hits = trace.hits if traced.reads_policies else ()
    unknown = [part for part in trace.read if _is_unknown(part, traced.request.context, question.facts)]
    return PoliciesAnswer(
        allowed=policy.allow,
        reasons=[PolicyReason(code=each.code, message=each.message) for each in policy.reasons],
        rules=[PolicyRule(package=each.package, rule=each.rule, file=each.file, line=each.line) for each in hits],
        obligations=dict(policy.obligations.audited()),
        depends_on=unknown,
        read=[part for part in trace.read if part not in unknown] if hits else [],
        lifted_by=list(traced.lifts),
    )


def _is_unknown(part: str, context: PolicyContext, facts: Collection[str]) -> bool:
    if part.startswith(FACTS):
        return part.removeprefix(FACTS) not in facts
    value_of = _CIRCUMSTANCES.get(part)
    return value_of is not None and value_of(context) is None
