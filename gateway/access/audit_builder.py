# SPDX-License-Identifier: Apache-2.0
"""Build the audit record of a decision: the caller, the operation, the outcome and the reason."""

from __future__ import annotations

from collections.abc import Sequence

from uuid_utils.compat import uuid7

from gateway.access.audit_facts import facts_of_changes
from gateway.access.audit_record import AUDIT_FORMAT, AuditedActor, AuditedDecision, AuditedResource, AuditRecord
from gateway.access.audit_size import bounded
from gateway.access.decision import Decision
from gateway.access.describe import describe_resource
from gateway.access.operation import Operation
from gateway.access.request_context import RequestContext
from gateway.access.resolved import Resolution

Judged = tuple[Operation, Decision]
"""(an operation or a part of one, its decision)"""


def _judged(
    operations: Sequence[Operation], decisions: Sequence[Decision], groups: Sequence[Sequence[Judged]]
) -> list[Judged]:
    """Return the decisions to record: each operation, followed by its parts."""
    judged: list[Judged] = []
    for operation, decision, group in zip(operations, decisions, groups, strict=True):
        judged.append((operation, decision))
        if operation.parts():
            judged.extend(group)
    return judged


def record_of(
    context: RequestContext,
    operations: Sequence[Operation],
    decisions: Sequence[Decision],
    groups: Sequence[Sequence[Judged]],
    resolution: Resolution,
) -> AuditRecord:
    """Return the audit record of all decisions of one admission. `groups` are the decided parts of each operation."""
    actor = context.actor
    judged = _judged(operations, decisions, groups)
    detail = {name: text for operation, _ in judged for name, text in operation.audit_details().items()}
    record = AuditRecord(
        id=uuid7(),
        format=AUDIT_FORMAT,
        at=resolution.now,
        request_id=context.request_id,
        actor=AuditedActor(
            kind=actor.kind.value,
            id=actor.id,
            assumed_role=None if actor.assumed_role is None else str(actor.assumed_role),
            engine=actor.engine,
            subject_proven=actor.subject_proven,
            asked_by=actor.asked_by,
        ),
        client_request_id=context.client_request_id,
        trace_id=context.trace_id,
        user_agent=context.user_agent,
        client_address=context.client_address,
        decisions=tuple(_audited(operation, decision, resolution) for operation, decision in judged),
        detail=detail | facts_of_changes(operations),
    )
    # Long records are cut before they wait in memory. A record with few objects is never too long.
    many = len(judged) > 1 or len(record.decisions[0].resources) > 10 or bool(record.detail)
    return bounded(record) if many else record


def _audited(operation: Operation, decision: Decision, resolution: Resolution) -> AuditedDecision:
    demands = operation.demands()
    resources: dict[AuditedResource, None] = {}
    for ref in (*(demand.on for demand in demands), *operation.further_refs()):
        resources[describe_resource(ref, resolution)] = None
    return AuditedDecision(
        operation=operation.name(),
        outcome=decision.outcome.value,
        determined_by=decision.determined_by.value,
        relations=tuple(
            dict.fromkeys("|".join(each.value for each in demand.relations) for demand in demands if demand.required)
        ),
        resources=tuple(resources),
        failure=None if decision.failure is None else decision.failure.value,
        policy_reasons=decision.policy_reasons,
        obligations={} if decision.obligations is None else decision.obligations.audited(),
    )
