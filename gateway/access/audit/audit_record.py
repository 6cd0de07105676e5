# SPDX-License-Identifier: Apache-2.0
"""The audit record of a decision: the caller, the operation, the decision and its reason. Each field's values are closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.audit.audit_facts import bounded, facts_of_changes
from gateway.access.decisions.decision import Decision
from gateway.access.door.request_context import RequestContext
from gateway.access.nouns.describe import describe_resource
from gateway.access.nouns.resolved import Resolution
from gateway.access.operation import Operation

AUDIT_FORMAT = 1


class AuditedActor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The caller, and the engine that acts for it. `subject_proven` is false if the engine asserted the caller.

    Below a view that is read with its owner's rights, `id` is that owner and `asked_by` the caller.
    """

    kind: str
    id: str
    assumed_role: str | None = None
    engine: str | None = None
    subject_proven: bool = True
    asked_by: str | None = None


class AuditedResource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An object of a decision: its name as in the request, and its id if it exists."""

    type: str
    id: str | None = None
    name: str | None = None
    warehouse_id: str | None = None


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of list entries that exceed the size limit: their number, and the SHA-256 of the whole list.

    The digest is that of the list's compact JSON as the record would contain it (`audit_size.digest`).
    """

    count: int
    sha256: str


class AuditedDecision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The decision on one operation. `failure` is the true reason, which the answer may hide."""

    operation: str
    outcome: str
    determined_by: str
    relations: tuple[str, ...] = ()
    resources: tuple[AuditedResource, ...] = ()
    failure: str | None = None
    policy_reasons: tuple[str, ...] = ()
    obligations: Mapping[str, int | bool] = {}
    resources_left_out: LeftOut | None = None
    policy_reasons_left_out: LeftOut | None = None


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One admission by the door. Use cases fill `detail` with what they vended or changed."""

    id: UUID
    format: int
    at: datetime
    request_id: str
    actor: AuditedActor
    decisions: tuple[AuditedDecision, ...]
    client_request_id: str | None = None
    """The `x-request-id` that the caller sent: any text, and not necessarily unique."""
    trace_id: str | None = None
    """The id of the trace, if the request is recorded by a tracer or its client sent the id."""
    user_agent: str | None = None
    client_address: str | None = None
    detail: Mapping[str, str] = {}
    decisions_left_out: LeftOut | None = None
    detail_left_out: Mapping[str, LeftOut] = {}

    @property
    def operation(self) -> str:
        """The first operation of the request."""
        return self.decisions[0].operation

    @property
    def outcome(self) -> str:
        """The outcome of the first operation of the request."""
        return self.decisions[0].outcome


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
