# SPDX-License-Identifier: Apache-2.0
"""Traces of requests and background tasks, sent to an OpenTelemetry collector by OTLP over HTTP.

The sampling is decided once, at the beginning of a request. A request that is not recorded creates no spans. Attributes
contain ids, counts and names of operations, never tokens, bodies, queries or locations.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping
from contextvars import Token
from time import time_ns
from types import TracebackType
from typing import Any, Final

from gateway.telemetry.span_sender import Client, Count, SpanSender
from gateway.telemetry.spans import (
    CLIENT,
    CURRENT,
    INTERNAL,
    SERVER,
    Attributes,
    Span,
    Trace,
    new_span_id,
    new_trace_id,
)

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SIXTY_FOUR_BITS: Final = 2**64 - 1
_ABSENT: Final[Mapping[str, str]] = {}


def _uncounted(_outcome: str, _number: int) -> None:
    return None


class NotRecorded:
    """Context manager that records nothing. All spans of requests that are not recorded are the same one."""

    __slots__ = ()

    def __enter__(self) -> NotRecorded:
        return self

    def __exit__(self, *_exc: object) -> None:
        return None

    def set_attribute(self, name: str, value: str | int | bool) -> None:
        """Do nothing."""


_NOT_RECORDED: Final = NotRecorded()


class Recording:
    """Context manager that makes a span the current one, and adds it to the queue at its end.

    An exception sets only its type, never its text. One of the types `refusals` is an answer, not a failure.
    """

    __slots__ = ("_refusals", "_sender", "_span", "_token")

    def __init__(self, sender: SpanSender, span: Span, refusals: tuple[type[BaseException], ...] = ()) -> None:
        self._sender = sender
        self._span = span
        self._refusals = refusals
        self._token: Token[Span | Trace | None] | None = None

    def __enter__(self) -> Recording:
        self._token = CURRENT.set(self._span)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            CURRENT.reset(self._token)
        if kind is not None:
            if issubclass(kind, self._refusals):
                self.set_attribute("lakegate.refusal", kind.__name__)
            else:
                _fail(self._span, kind.__name__)
        self._span.ended = time_ns()
        self._sender.add(self._span)

    def set_attribute(self, name: str, value: str | int | bool) -> None:
        """Set an attribute of the span."""
        self._span.attributes = {**self._span.attributes, name: value}


class Unrecorded:
    """Context manager of a request that is not recorded. Its trace is passed on to other systems with that flag."""

    __slots__ = ("_token", "_trace")

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._token: Token[Span | Trace | None] | None = None

    def __enter__(self) -> Unrecorded:
        self._token = CURRENT.set(self._trace)
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._token is not None:
            CURRENT.reset(self._token)

    def set_attribute(self, name: str, value: str | int | bool) -> None:
        """Do nothing."""


class Tracer:
    """Creates the spans of one process. `client` sends them, and `count` receives their number by outcome.

    `sample_ratio` is the part of the traces that is recorded. With `trust_clients`, the client of a request decides
    instead if it sends a `traceparent`.
    """

    def __init__(
        self,
        client: Client,
        *,
        sample_ratio: float,
        service_name: str,
        count: Count = _uncounted,
        trust_clients: bool = False,
    ) -> None:
        # Without a collector there is no tracer, and none of these libraries is imported.
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        from gateway.telemetry.span_encoding import SpanEncoding

        # It would log the text of each malformed `tracestate`, which anybody can send.
        logging.getLogger("opentelemetry.trace.span").setLevel(logging.CRITICAL)
        self._context_of = trace.get_current_span
        self._propagator = TraceContextTextMapPropagator()
        # As in the SDK: the lower half of a trace id decides, so that gateways with the same ratio agree.
        self._bound = round(sample_ratio * (_SIXTY_FOUR_BITS + 1))
        self._trust_clients = trust_clients
        resource: Any = Resource.create({"service.name": service_name}).attributes
        self._sender = SpanSender(client, SpanEncoding(resource), count)

    def start(self) -> None:
        """Start to send spans, inside the event loop."""
        self._sender.start()

    def span(
        self, name: str, attributes: Attributes = _ABSENT, *, refusals: tuple[type[BaseException], ...] = ()
    ) -> Recording | NotRecorded:
        """Return a context manager that records a span below the current one.

        It records nothing outside of a request or task, or if that is not recorded. `refusals` are types of exceptions
        that are answers, not failures.
        """
        parent = CURRENT.get()
        if type(parent) is not Span:
            return _NOT_RECORDED
        return Recording(self._sender, _below(parent, name, INTERNAL, attributes), refusals)

    def server_span(self, method: str, headers: Mapping[str, str]) -> Recording | Unrecorded:
        """Return a context manager that records the span of a request, if the request is in the sample.

        `headers` are `traceparent` and `tracestate`, if sent. Log lines inside have the id of the trace.
        """
        name = method if method in _METHODS else "_OTHER"
        if headers:
            given = self._context_of(self._propagator.extract(headers)).get_span_context()
            if given.is_valid:
                trace = Trace(given.trace_id, given.trace_state.to_header(), True)
                # The id of the trace is the client's too, so it cannot decide either.
                if not (given.trace_flags.sampled if self._trust_clients else self._is_in_sample(new_trace_id())):
                    return Unrecorded(trace)
                return self._root(trace, name, SERVER, {"http.request.method": name}, given.span_id)
        return self._sampled(name, SERVER, {"http.request.method": name})

    def task_span(self, name: str, attributes: Attributes = _ABSENT) -> Recording | Unrecorded:
        """Return a context manager that records one run of a background task as a trace, if it is in the sample."""
        return self._sampled(name, INTERNAL, attributes)

    def _sampled(self, name: str, kind: int, attributes: Attributes) -> Recording | Unrecorded:
        trace = Trace(new_trace_id())
        if not self._is_in_sample(trace.id):
            return Unrecorded(trace)
        return self._root(trace, name, kind, attributes, 0)

    def _is_in_sample(self, id: int) -> bool:
        return id & _SIXTY_FOUR_BITS < self._bound

    def _root(self, trace: Trace, name: str, kind: int, attributes: Attributes, parent: int) -> Recording:
        span = Span(trace, new_span_id(), parent, name, kind, time_ns(), attributes, parent != 0)
        return Recording(self._sender, span)

    def complete_request(self, operation: str, status: int) -> None:
        """Set the operation and the status of the response on the current span, that of a request."""
        span = CURRENT.get()
        if type(span) is Span:
            span.name = operation
            span.attributes = {
                **span.attributes,
                "lakegate.operation": operation,
                "http.response.status_code": status,
            }
            if status >= 500:
                _fail(span, str(status))

    def annotate(self, attributes: Attributes) -> None:
        """Set attributes on the current span."""
        span = CURRENT.get()
        if type(span) is Span:
            span.attributes = {**span.attributes, **attributes}

    def is_recording(self) -> bool:
        """Return True if the current request or task is recorded."""
        return type(CURRENT.get()) is Span

    def mark(self, event: str) -> None:
        """Record on the current span that `event` happened now."""
        span = CURRENT.get()
        if type(span) is Span:
            span.events = (*span.events, (event, time_ns()))

    def begin(self, name: str, attributes: Attributes) -> Span | None:
        """Return a span of a call to another system, below the current span; None if that is not recorded.

        It does not become the current span, and the caller must pass it to `end`.
        """
        parent = CURRENT.get()
        return _below(parent, name, CLIENT, attributes) if type(parent) is Span else None

    def end(self, span: Span | None, *, error: str | None = None, attributes: Attributes = _ABSENT) -> None:
        """End a span of `begin`. `error` is the type of an error. None as `span` is allowed."""
        if span is None:
            return
        if attributes:
            span.attributes = {**span.attributes, **attributes}
        if error is not None:
            _fail(span, error)
        span.ended = time_ns()
        self._sender.add(span)

    def propagate(self, span: Span | None, headers: MutableMapping[str, str]) -> None:
        """Set `traceparent` and `tracestate` in the headers of a call to another system.

        They are those of `span`. If it is None, they are those of the request, which is not recorded then: the other
        system does not record it either. Outside of a request, no header is set.
        """
        current = span or CURRENT.get()
        if current is None:
            return
        if type(current) is Span:
            trace, id, flag = current.trace, current.id, "01"
        else:
            trace, id, flag = current, new_span_id(), "00"  # type: ignore[assignment]  # no span, so it is a trace
        headers["traceparent"] = f"00-{trace.id:032x}-{id:016x}-{flag}"
        if trace.state:
            headers["tracestate"] = trace.state

    async def close(self) -> None:
        """Send the recorded spans. Return after 3 seconds at the latest; the rest is lost."""
        await self._sender.close()


def _below(parent: Span, name: str, kind: int, attributes: Attributes) -> Span:
    return Span(parent.trace, new_span_id(), parent.id, name, kind, time_ns(), attributes)


def _fail(span: Span, kind: str) -> None:
    span.attributes = {**span.attributes, "error.type": kind}
    span.error = True
