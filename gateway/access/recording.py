# SPDX-License-Identifier: Apache-2.0
"""The audit record of a decision: what was asked by whom, what came out, and what determined it."""

from __future__ import annotations

from collections.abc import Sequence

from uuid_utils.compat import uuid7

from gateway.access.audit_record import AUDIT_FORMAT, AuditedActor, AuditedDecision, AuditedResource, AuditRecord
from gateway.access.audit_size import bounded
from gateway.access.decision import Decision
from gateway.access.describe import audited_obligations, describe_resource
from gateway.access.entrance import Entrance
from gateway.access.operation import Operation
from gateway.access.resolved import Resolution

Judged = tuple[Operation, Decision]
"""One operation, or one part of one, and how it was decided."""


def told_of(
    asked: Sequence[Operation], decisions: Sequence[Decision], groups: Sequence[Sequence[Judged]]
) -> list[Judged]:
    """What the audit tells: each operation, followed by its parts when it has any."""
    told: list[Judged] = []
    for operation, decision, group in zip(asked, decisions, groups, strict=True):
        told.append((operation, decision))
        if operation.parts():
            told.extend(group)
    return told


def record_of(entrance: Entrance, told: Sequence[Judged], resolution: Resolution) -> AuditRecord:
    """The record of everything that was decided in one admission."""
    actor = entrance.actor
    record = AuditRecord(
        id=uuid7(),
        format=AUDIT_FORMAT,
        at=resolution.now,
        request_id=entrance.request_id,
        actor=AuditedActor(
            kind=actor.kind.value,
            id=actor.id,
            assumed_role=None if actor.assumed_role is None else str(actor.assumed_role),
            engine=actor.engine,
            subject_proven=actor.subject_proven,
            asked_by=actor.asked_by,
        ),
        client_request_id=entrance.client_request_id,
        user_agent=entrance.user_agent,
        client_address=entrance.client_address,
        decisions=tuple(_audited(operation, decision, resolution) for operation, decision in told),
        detail={name: text for operation, _ in told for name, text in operation.told().items()},
    )
    # Cut before it waits in memory; a record of a few things is not large.
    many = len(told) > 1 or len(record.decisions[0].resources) > 10 or bool(record.detail)
    return bounded(record) if many else record


def _audited(operation: Operation, decision: Decision, resolution: Resolution) -> AuditedDecision:
    demands = operation.demands()
    resources: dict[AuditedResource, None] = {}
    for ref in (*(demand.on for demand in demands), *operation.looks_up()):
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
        obligations={**audited_obligations(decision.obligations), **_restricted_to(decision)},
    )


def _restricted_to(decision: Decision) -> dict[str, int]:
    """To how many columns it was allowed, where not all may be read; the actor's engine holds back the others."""
    if not decision.restrictions:
        return {}
    return {"readable_columns": sum(len(restriction.fields) for _, restriction in decision.restrictions)}
