# SPDX-License-Identifier: Apache-2.0
"""Traces of decisions: the door and its ports with spans. Without a tracer, none of these classes is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.audit.audit_record import AuditRecord
from gateway.access.audit.issued_credential import IssuedCredential
from gateway.access.decisions.grant_expiry import ExpiryCache
from gateway.access.decisions.policy import PolicyAnswer, PolicyRequest
from gateway.access.door.door import Door
from gateway.access.door.permit import Permit
from gateway.access.door.request_context import RequestContext
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.resolved import Excerpt, Governed, Resolution
from gateway.access.operation import Operation
from gateway.access.ports import AuditSink, Observer, Pin, Policies, Question, Relationships, Resolver
from gateway.iceberg.errors import CatalogError
from gateway.obligations.binding import PolicyProblem
from gateway.obligations.data_policies import PolicyInputs
from gateway.telemetry.spans import known_trace_id
from gateway.telemetry.tracing import Tracer

Op = TypeVar("Op", bound=Operation)
Extra = TypeVar("Extra", bound=Operation)


class TracedDoor(Door):
    """Door with a span for each decision. The span also has the outcome, and the engine that determined it."""

    def __init__(
        self,
        tracer: Tracer,
        *,
        resolver: Resolver,
        relationships: Relationships,
        policies: Policies,
        audit: AuditSink,
        observer: Observer,
        read_only: bool = False,
        expiries: ExpiryCache | None = None,
        alert: Callable[[Sequence[PolicyProblem]], None] | None = None,
        kept_claims: frozenset[str] | None = None,
    ) -> None:
        self._tracer = tracer
        super().__init__(
            resolver=TracedResolver(resolver, tracer),
            relationships=TracedRelationships(relationships, tracer),
            policies=TracedPolicies(policies, tracer),
            audit=TracedAudit(audit, tracer),
            observer=TracedDecisions(observer, tracer),
            read_only=read_only,
            expiries=expiries,
            alert=alert,
            kept_claims=kept_claims,
        )

    async def admit_with(
        self, context: RequestContext, operation: Op, extra: Extra | None
    ) -> tuple[Permit[Op], Permit[Extra] | None]:
        """Return the permits as the door does. A refusal is no failure of the span. Audit records name the trace."""
        context.trace_id = known_trace_id()
        with self._tracer.span("door.admit", {"lakegate.operation": operation.name()}, refusals=(CatalogError,)):
            return await super().admit_with(context, operation, extra)


class TracedDecisions:
    """Observer of decisions that also sets their outcome on the span of the door."""

    def __init__(self, observer: Observer, tracer: Tracer) -> None:
        self._observer = observer
        self._tracer = tracer

    def decided(self, *, operation: str, outcome: str, determined_by: str) -> None:
        """Record one decided operation."""
        self._tracer.annotate({"lakegate.outcome": outcome, "lakegate.determined_by": determined_by})
        self._observer.decided(operation=operation, outcome=outcome, determined_by=determined_by)

    def decision_took(self, engine: str, seconds: float) -> None:
        """Record the duration of an engine."""
        self._observer.decision_took(engine, seconds)


class TracedResolver:
    """Resolver with a span for each read of rows."""

    def __init__(self, resolver: Resolver, tracer: Tracer) -> None:
        self._resolver = resolver
        self._tracer = tracer

    async def resolve(self, refs: Sequence[Ref], caller: Actor) -> Resolution:
        """Read the rows behind all references."""
        with self._tracer.span("postgresql.resolve", {"lakegate.references": len(refs)}):
            return await self._resolver.resolve(refs, caller)

    async def columns(self, caller: Actor, table_ids: Sequence[UUID]) -> Mapping[UUID, frozenset[int]]:
        """Return the columns of these tables with grants to the caller."""
        with self._tracer.span("postgresql.columns", {"lakegate.tables": len(table_ids)}):
            return await self._resolver.columns(caller, table_ids)

    async def excerpts(self, ids: Sequence[UUID]) -> Mapping[UUID, Excerpt]:
        """Read the excerpts of the metadata documents of these tables and views."""
        with self._tracer.span("postgresql.excerpts", {"lakegate.objects": len(ids)}):
            return await self._resolver.excerpts(ids)

    async def policy_inputs(self, rows: Sequence[Governed]) -> Mapping[UUID, PolicyInputs | None]:
        """Return the data policies bound to each row."""
        with self._tracer.span("postgresql.policy_inputs", {"lakegate.objects": len(rows)}):
            return await self._resolver.policy_inputs(rows)

    async def mapped_values(
        self, project_id: str, names: Sequence[str], user: str, roles: Sequence[str]
    ) -> Sequence[tuple[str, tuple[str, ...]]]:
        """Return the values of mapping tables for a principal."""
        with self._tracer.span("postgresql.mapped_values", {"lakegate.tables": len(names)}):
            return await self._resolver.mapped_values(project_id, names, user, roles)

    async def subjects_by_group(self, policy_ids: Sequence[str], provider: str) -> frozenset[str]:
        """Return the data policies with subjects by groups of the provider."""
        with self._tracer.span("postgresql.subjects_by_group", {"lakegate.objects": len(policy_ids)}):
            return await self._resolver.subjects_by_group(policy_ids, provider)

    async def grant_expiries(self, caller: Actor, *, after: datetime, until: datetime) -> Sequence[datetime]:
        """Return the expiries of grants to the caller between `after` and `until`."""
        with self._tracer.span("postgresql.grant_expiries"):
            return await self._resolver.grant_expiries(caller, after=after, until=until)


class TracedRelationships:
    """Relationships with a span for each check, answers from the cache included."""

    def __init__(self, relationships: Relationships, tracer: Tracer) -> None:
        self._relationships = relationships
        self._tracer = tracer

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """Return one answer for each question, in order."""
        with self._tracer.span("openfga.check", {"lakegate.questions": len(questions)}):
            return await self._relationships.check(actor, questions, now=now, pin=pin, paced=paced)


class TracedPolicies:
    """Policies with a span for each decision, answers from the cache included."""

    def __init__(self, policies: Policies, tracer: Tracer) -> None:
        self._policies = policies
        self._tracer = tracer

    async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        """Return one answer for each question of the request, in order."""
        with self._tracer.span("opa.decide"):
            return await self._policies.decide(request)


class TracedAudit:
    """Audit sink with a span for each record that a request waits for."""

    def __init__(self, audit: AuditSink, tracer: Tracer) -> None:
        self._audit = audit
        self._tracer = tracer

    def buffer(self, record: AuditRecord) -> None:
        """Accept the record for writing. No span: the request does not wait."""
        self._audit.buffer(record)

    async def commit(self, record: AuditRecord, issued: IssuedCredential | None = None) -> None:
        """Return once the record is durable."""
        with self._tracer.span("audit.commit"):
            await self._audit.commit(record, issued)
