# SPDX-License-Identifier: Apache-2.0
"""Record the inputs of decisions in audit records, and return the policy input that a record was decided by. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from gateway.access.actor import Actor
from gateway.access.audit.audit_record import AuditedActor, AuditedDecision, AuditedResource, AuditRecord
from gateway.access.audit.audited_inputs import (
    INPUTS_LEFT_OUT,
    MAX_INPUT_BYTES,
    MAX_ROLES,
    ROLES_LEFT_OUT,
    CallerInputs,
    DecisionInputs,
)
from gateway.access.decisions.policy import PolicyActor, PolicyContext, PolicyQuestion, PolicyResource
from gateway.access.demand import Demand
from gateway.access.events.event_redaction import without_secrets
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.resolved import Resolution

_encode: Final = msgspec.json.Encoder().encode


def caller_inputs(actor: Actor, resolution: Resolution) -> CallerInputs:
    """Return the roles of the caller for its audit record."""
    roles = resolution.caller_roles
    if len(roles) > MAX_ROLES:
        return ROLES_LEFT_OUT
    return CallerInputs(roles=roles, groups_known=not actor.groups_unknown)


def decision_inputs(question: PolicyQuestion, demands: tuple[Demand, ...]) -> DecisionInputs:
    """Return the inputs of a decision, without what the record has elsewhere.

    They are left out if they are too large, or if a fact looks like a secret.
    """
    about, facts = question.resource, question.facts
    inputs = DecisionInputs(**about.names(), facts=facts, demands=_demands(demands))
    if len(_encode(inputs)) > MAX_INPUT_BYTES:
        return INPUTS_LEFT_OUT
    if facts and any(isinstance(each, str | tuple) for each in facts.values()):
        stated = _encode(facts)
        if without_secrets(stated) != stated:
            return INPUTS_LEFT_OUT
    return inputs


def _demands(demands: tuple[Demand, ...]) -> tuple[tuple[str, int], ...]:
    """Return (relations, index of the object) of each required demand; empty if all are on the first object."""
    if len(demands) < 2 or all(each.on == demands[0].on for each in demands):
        return ()
    objects: dict[Ref, int] = {}
    for each in demands:
        objects.setdefault(each.on, len(objects))
    return tuple((stated_relations(each), objects[each.on]) for each in demands if each.required)


def stated_relations(demand: Demand) -> str:
    """Return the accepted relations of a demand as text, with `|` between them."""
    return demand.relation.value if demand.alternative is None else f"{demand.relation}|{demand.alternative}"


def replayable(record: AuditRecord, decision: AuditedDecision) -> bool:
    """Return True if the record has all inputs of the decision."""
    caller, inputs = record.inputs, decision.inputs
    return caller is not None and caller.complete and inputs is not None and inputs.complete


def policy_actor(actor: AuditedActor, inputs: CallerInputs) -> PolicyActor:
    """Return the caller as policies received it."""
    return PolicyActor(
        id=actor.id,
        kind=actor.kind,
        assumed_role=actor.assumed_role,
        roles=inputs.roles,
        engine=actor.engine,
        subject_proven=actor.subject_proven,
        asked_by=actor.asked_by,
        groups_known=inputs.groups_known,
    )


def policy_context(record: AuditRecord) -> PolicyContext:
    """Return the circumstances of the request as policies received them."""
    return PolicyContext.at(
        record.at,
        request_id=record.request_id,
        user_agent=record.user_agent,
        client_address=record.client_address,
    )


def policy_question(decision: AuditedDecision, inputs: DecisionInputs) -> PolicyQuestion:
    """Return the question that policies received."""
    about = decision.resources[0] if decision.resources else AuditedResource(type="server")
    return PolicyQuestion(
        operation=decision.operation,
        resource=PolicyResource(type=about.type, id=about.id, **inputs.names()),
        facts=inputs.facts,
    )
