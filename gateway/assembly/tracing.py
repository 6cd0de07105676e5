# SPDX-License-Identifier: Apache-2.0
"""Traces of requests: wrappers of the application and of the door's ports. Without a collector, none is created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.audit_record import AuditRecord
from gateway.access.issued_credential import IssuedCredential
from gateway.access.policy import PolicyAnswer, PolicyRequest
from gateway.access.ports import AuditSink, Pin, Policies, Question, Relationships, Resolver
from gateway.access.refs import Ref
from gateway.access.resolved import Excerpt, Resolution
from gateway.api.build import Application
from gateway.api.latch import RequestObserver
from gateway.settings import Settings, SettingsError, certificate_sources
from gateway.settings.env import PREFIX
from gateway.telemetry.tracing import Tracer

#: Maximum length of a `traceparent` or `tracestate`; longer ones are ignored. W3C Trace Context requires 512.
_MAX_HEADER = 512


def open_tracer(settings: Settings) -> Tracer | None:
    """Return the tracer of this process; None if no collector is set. Raises SettingsError for malformed headers."""
    wanted = settings.tracing
    if wanted.endpoint is None:
        return None
    file, directory = certificate_sources()
    return Tracer(
        endpoint=wanted.endpoint,
        headers=_headers("" if wanted.headers is None else wanted.headers.reveal()),
        sample_ratio=wanted.sample_ratio,
        service_name=wanted.service_name,
        certificates=file or directory,
    )


def traced_application(app: Application, tracer: Tracer | None) -> Application:
    """Return `app`, with a span for each request if there is a tracer."""
    return app if tracer is None else TracedApplication(app, tracer)


def traced_observer(observer: RequestObserver, tracer: Tracer | None) -> RequestObserver:
    """Return `observer`, which also completes the span of each request if there is a tracer."""
    return observer if tracer is None else TracedObserver(observer, tracer)


def traced_ports(
    tracer: Tracer | None, resolver: Resolver, relationships: Relationships, policies: Policies, audit: AuditSink
) -> tuple[Resolver, Relationships, Policies, AuditSink]:
    """Return the ports of the door in the same order, with spans if there is a tracer."""
    if tracer is None:
        return resolver, relationships, policies, audit
    return (
        TracedResolver(resolver, tracer),
        TracedRelationships(relationships, tracer),
        TracedPolicies(policies, tracer),
        TracedAudit(audit, tracer),
    )


def _headers(text: str) -> dict[str, str]:
    """Return the headers of the setting. The error does not contain the text, because it is a secret."""
    pairs = [each.partition("=") for each in text.split(",") if each.strip()]
    if any(not name.strip() or not equals for name, equals, _ in pairs):
        raise SettingsError(f"{PREFIX}TRACING__HEADERS must be written `name=value`, separated by commas")
    return {name.strip(): value.strip() for name, _, value in pairs}


class TracedApplication:
    """ASGI application that records a span for each request. It closes the tracer after the shutdown."""

    def __init__(self, app: Application, tracer: Tracer) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Call the application, for a request inside its span."""
        if scope["type"] != "http":
            try:
                await self._app(scope, receive, send)
            finally:
                await self._tracer.close()
            return
        with self._tracer.server_span(scope["method"], _trace_headers(scope["headers"])):
            await self._app(scope, receive, send)


def _trace_headers(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers of W3C Trace Context. A repeated or too long one is left out, as the standard requires."""
    found: dict[str, str] = {}
    for wanted in ("traceparent", "tracestate"):
        values = [value for name, value in headers if name.lower() == wanted.encode()]
        if len(values) == 1 and len(values[0]) <= _MAX_HEADER:
            found[wanted] = values[0].decode("latin-1")
    return found


class TracedObserver:
    """Observer of requests that also sets the operation and the status on the span of the request."""

    def __init__(self, observer: RequestObserver, tracer: Tracer) -> None:
        self._observer = observer
        self._tracer = tracer

    def request_answered(self, *, method: str, operation: str | None, status: int, seconds: float) -> None:
        """Record one response."""
        self._tracer.name_request(operation or "unmatched", status)
        self._observer.request_answered(method=method, operation=operation, status=status, seconds=seconds)


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
