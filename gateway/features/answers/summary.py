# SPDX-License-Identifier: Apache-2.0
"""Write an explanation as one or two sentences for people. Pure."""

from __future__ import annotations

from gateway.access.operations.answers import Explanation, Fact, Party

_BLOCKED = {
    "warehouse-inactive": "the warehouse is inactive",
    "user-deactivated": "the directory deactivated the user",
    "authorizer": "an additional authorizer refuses it",
    "data-policy": "a data policy makes the action impossible",
    "obligation-unenforced": "a guardrail demands an obligation that nothing enforces",
}


def summary_of(explanation: Explanation) -> str:
    """Return the decision and its most important reason."""
    who, what = party_text(explanation.principal), explanation.action
    where = party_text(explanation.object)
    if explanation.policies is None:
        verb = "had" if explanation.relationships.holds else "did not have"
        moment = explanation.as_of.isoformat(timespec="seconds")
        return f"At {moment}, {who} {verb} the right to {what} on {where}: {_reason(explanation)}."
    verb = {
        "allowed": "may",
        "restricted": "may, with restrictions,",
        "depends": "may, depending on circumstances,",
        "denied": "may not",
    }[explanation.decision]
    return f"{who} {verb} {what} on {where}: {_reason(explanation)}."


def _reason(explanation: Explanation) -> str:
    relationships, policies = explanation.relationships, explanation.policies
    if explanation.blocked_by:
        return "; ".join(_BLOCKED[each] for each in explanation.blocked_by)
    if not relationships.holds:
        if not relationships.repairs:
            return "no grant gave the right" if policies is None else "no grant gives the right"
        grants = relationships.repairs[0].grants
        needed = " and ".join(f"{each.privilege} on {party_text(each.object)}" for each in grants)
        return f"no grant gives the right; {needed} would be enough"
    if policies is not None and not policies.allowed:
        reasons = [each.message.rstrip(".") for each in policies.reasons] or ["a guardrail denies it"]
        lifts = [f"it would be allowed with {each.input} = {each.value}" for each in policies.lifted_by]
        return "; ".join((*reasons, *lifts))
    if relationships.another_grant:
        return "by another grant, which you may not read"
    steps = [_step(each) for each in relationships.witnesses[0].facts if each.kind != "hierarchy"]
    text = ", ".join(steps) or "by the hierarchy alone"
    if explanation.decision == "restricted":
        return f"{text}; a data policy limits the rows or columns"
    depends_on = [] if policies is None else policies.depends_on
    return f"{text}; it depends on {', '.join(depends_on)}" if depends_on else text


def _step(fact: Fact) -> str:
    if fact.kind in ("membership", "group"):
        return f"member of {party_text(fact.object)}"
    if fact.kind == "visibility":
        return f"a grant on the contents of {party_text(fact.object)}"
    return f"{fact.relation} on {party_text(fact.object)}"


def party_text(party: Party) -> str:
    """Return the type and the name of an object or principal, its id if it has no name."""
    return f"{party.type.replace('_', ' ')} {party.name or party.id}"
