# SPDX-License-Identifier: Apache-2.0
"""Build audit records: the caller, the operation with all its fields, the outcome and the reason."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec
from uuid_utils.compat import uuid7

from gateway.access.audit.audit_record import (
    AUDIT_FORMAT,
    AuditedActor,
    AuditedDecision,
    AuditedRefusal,
    AuditedResource,
    AuditRecord,
    bounded,
)
from gateway.access.audit.recorded_inputs import caller_inputs, decision_inputs, stated_relations
from gateway.access.decisions.decision import Decision, DeterminedBy, Outcome
from gateway.access.decisions.policy import PolicyQuestion
from gateway.access.door.request_context import RequestContext
from gateway.access.events.event_redaction import without_secrets
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.describe import describe_resource
from gateway.access.nouns.refs import Ref, TabularRef
from gateway.access.nouns.resolved import (
    Resolution,
    ResolvedGenericTable,
    ResolvedNamespace,
    ResolvedTable,
    ResolvedView,
)
from gateway.access.operation import Operation

BREAK_GLASS: Final = "break_glass"
"""The detail of the audit record with the ids of the caller's active break-glass activations there."""

FACTS: Final = "facts"
"""The detail of the audit record with the facts of its changes."""

MAX_FACTS_BYTES: Final = 8_192
"""Limit of the facts of one operation, in bytes of JSON, beside the names of its fields."""
_MAX_REDACTED_BYTES: Final = 65_536
"""Only the digest of a larger value is recorded, and it is computed with the secrets."""

Facts = dict[str, msgspec.Raw]


class Digest(msgspec.Struct, frozen=True):
    """Replaces a value that is too large for the record: the length and the SHA-256 of the value's compact JSON."""

    bytes: int
    sha256: str


def facts_of_changes(operations: Iterable[Operation]) -> dict[str, str]:
    """Return the audit detail `FACTS`: JSON that maps the name of each changing operation to its facts; empty if none
    changes.

    An operation with the same facts as an earlier one is left out, for example one of the two of an adoption.
    """
    facts: dict[str, Facts] = {}
    for operation in operations:
        if operation.changes() and (own := facts_of(operation)) and own not in facts.values():
            facts[operation.name()] = own
    return {FACTS: msgspec.json.encode(facts).decode()} if facts else {}


def facts_of(operation: Operation) -> Facts:
    """Return the fields of an operation as JSON by name, without unset fields and without objects that the record lists
    already.
    """
    objects = {*(demand.on for demand in operation.demands()), *operation.further_refs()}
    kinds = {type(each) for each in objects}
    facts: Facts = {}
    for name, value in operation.audited_fields().items():
        if value is not None and not (type(value) in kinds and value in objects):
            facts[name] = _encoded(value)
    return _fitting(facts, MAX_FACTS_BYTES)


def _encoded(value: object) -> msgspec.Raw:
    data = msgspec.json.encode(_stated(value))
    return msgspec.Raw(data if len(data) > _MAX_REDACTED_BYTES else without_secrets(data))


def _stated(value: object) -> object:
    """Return the value, with each reference to a table or view replaced by an object of its type and its id or name."""
    match value:
        case TabularRef():
            named = {"name": value.identifier} if value.named else {"id": value.id}
            return {"type": value.type, **named}
        case tuple():
            return [_stated(each) for each in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: _stated(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def _fitting(values: Facts, room: int, *, members: bool = True) -> Facts:
    """Replace the largest values by digests until all values fit in `room` bytes.

    With `members`, a JSON object is kept if digests of its largest members make it small enough.
    """
    excess = sum(len(bytes(value)) for value in values.values()) - room
    for name in sorted(values, key=lambda name: -len(bytes(values[name]))):
        if excess > 0:
            whole = bytes(values[name])
            values[name] = _shorter(whole, len(whole) - excess) if members else _digest(whole)
            excess -= len(whole) - len(bytes(values[name]))
    return values


def _shorter(whole: bytes, room: int) -> msgspec.Raw:
    """Return a JSON object with its largest members replaced by digests.

    Return the digest of the whole value if it is not an object, or if the shortened object exceeds `room` bytes.
    """
    if whole.startswith(b"{"):
        members = msgspec.json.decode(whole, type=Facts)
        names = len(whole) - sum(len(bytes(value)) for value in members.values())
        shorter = msgspec.json.encode(_fitting(members, room - names, members=False))
        if len(shorter) <= room:
            return msgspec.Raw(shorter)
    return _digest(whole)


def _digest(whole: bytes) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(Digest(len(whole), hashlib.sha256(whole).hexdigest())))


class Judged(NamedTuple):
    """An operation or a part of one, its decision, and its question to the policies.

    The question is None if only the parts of the operation were decided.
    """

    operation: Operation
    decision: Decision
    question: PolicyQuestion | None


def _judged(
    operations: Sequence[Operation], decisions: Sequence[Decision], groups: Sequence[Sequence[Judged]]
) -> list[Judged]:
    """Return the operations to record with their decisions: each operation, followed by its parts."""
    judged: list[Judged] = []
    for operation, decision, group in zip(operations, decisions, groups, strict=True):
        if operation.parts():
            judged.append(Judged(operation, decision, None))
        judged.extend(group)
    return judged


def record_of(
    context: RequestContext,
    operations: Sequence[Operation],
    decisions: Sequence[Decision],
    groups: Sequence[Sequence[Judged]],
    resolution: Resolution,
) -> AuditRecord:
    """Return the audit record of one admission with all its decisions.

    `groups` are the decided parts of each operation.
    """
    actor = context.actor
    judged = _judged(operations, decisions, groups)
    detail = {name: text for each in judged for name, text in each.operation.audit_details().items()}
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
        decisions=tuple(_audited(each, resolution) for each in judged),
        detail=detail | facts_of_changes(operations) | _break_glass(judged, resolution),
        inputs=caller_inputs(actor, resolution),
    )
    # Long records are cut before they wait in memory. A record with few objects is never too long.
    many = len(judged) > 1 or len(record.decisions[0].resources) > 10 or bool(record.detail)
    return bounded(record) if many else record


def _break_glass(judged: Sequence[Judged], resolution: Resolution) -> dict[str, str]:
    """Return the detail with the ids of the caller's active break-glass activations on the objects of the record."""
    if not resolution.break_glass:
        return {}
    refs = {ref for each in judged for ref in (*_demanded(each.operation), *each.operation.further_refs())}
    rows = [row for ref in refs if (row := resolution.get(ref)) is not None]
    within = {id for row in rows for id in _and_containers(row)}
    marks = sorted(id for id, on in resolution.break_glass if on in within)
    return {BREAK_GLASS: ",".join(marks)} if marks else {}


def _demanded(operation: Operation) -> tuple[Ref, ...]:
    return tuple(demand.on for demand in operation.demands())


def _and_containers(row: Resolved) -> set[str]:
    """Return the ids of an object, of the namespaces above it and of its warehouse."""
    match row:
        case (
            ResolvedTable(namespace=namespace)
            | ResolvedView(namespace=namespace)
            | ResolvedGenericTable(namespace=namespace)
        ):
            inner: ResolvedNamespace | None = namespace
        case ResolvedNamespace():
            inner = row
        case _:
            inner = None
    above = () if inner is None else (inner.id, *inner.ancestors, inner.warehouse.id)
    return {row.key.id, *map(str, above)}


def _audited(judged: Judged, resolution: Resolution) -> AuditedDecision:
    operation, decision, question = judged
    demands = operation.demands()
    resources: dict[AuditedResource, None] = {}
    for ref in (*(demand.on for demand in demands), *operation.further_refs()):
        resources[describe_resource(ref, resolution)] = None
    return AuditedDecision(
        operation=operation.name(),
        outcome=decision.outcome.value,
        determined_by=decision.determined_by.value,
        relations=tuple(dict.fromkeys(stated_relations(demand) for demand in demands if demand.required)),
        resources=tuple(resources),
        failure=None if decision.failure is None else decision.failure.value,
        refused=_refused(decision, resolution),
        policy_reasons=decision.policy_reasons,
        obligations={} if decision.obligations is None else decision.obligations.audited(),
        inputs=decision_inputs(question, demands) if question is not None and _was_asked(operation, decision) else None,
    )


def _was_asked(operation: Operation, decision: Decision) -> bool:
    return decision.determined_by is not DeterminedBy.NONE and not operation.is_public()


def _refused(decision: Decision, resolution: Resolution) -> AuditedRefusal | None:
    """Return the demand that a decision refused on a visible object; None for other decisions."""
    if decision.outcome is not Outcome.FORBIDDEN or decision.refused is None:
        return None
    row = resolution.get(decision.refused.on)
    if row is None:
        return None
    return AuditedRefusal(relation=decision.refused.relation.value, type=row.key.type.value, id=row.key.id)
