# SPDX-License-Identifier: Apache-2.0
"""Record traces of requests and background tasks, and send them to an OpenTelemetry collector by OTLP over HTTP.

Whether a request is recorded is decided when it begins. A request that is not recorded creates no spans. Attributes
contain ids, counts and names of operations, never tokens, bodies, queries or locations. HTTP calls to OpenFGA and OPA
are recorded by hooks of aiohttp, and have the header `traceparent`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping
from contextvars import Token
from time import time_ns
from types import SimpleNamespace
from typing import Any, Final

import aiohttp

from gateway.spans import (
    CURRENT,
    INTERNAL,
    SERVER,
    Attributes,
    Recording,
    Span,
    Trace,
    begin,
    end,
    is_recording,
    new_span_id,
    new_trace_id,
)
from gateway.telemetry.span_sender import Client, Count, SpanSender


def client_spans(system: str) -> aiohttp.TraceConfig:
    """Return the hooks for a client's HTTP session. `system` is its name in spans, for example `openfga`.

    A span is named by the last segment of the path, which no client of the gateway can choose. It ends with the headers
    of the response. A call that is repeated after a lost connection has two spans. A call outside of a request has no
    span and no `traceparent`. In a request that is not recorded, the header of a call has the flag for that.
    """

    async def started(_session: Any, context: SimpleNamespace, request: aiohttp.TraceRequestStartParams) -> None:
        context.span = None
        if is_recording():
            url = request.url
            context.span = begin(
                f"{system}.http {url.name}",
                {
                    "http.request.method": request.method,
                    "server.address": url.host or "",
                    "server.port": url.port or 0,
                },
            )
        # aiohttp sends these headers, so they name the span of this call and not the span of the check around it.
        propagate(context.span, request.headers)

    async def ended(_session: Any, context: SimpleNamespace, request: aiohttp.TraceRequestEndParams) -> None:
        if context.span is None:
            return
        # A redirect is not followed, so the response is that of the engine itself.
        status = request.response.status
        end(
            context.span,
            attributes={"http.response.status_code": status},
            error=str(status) if status >= 400 else None,
        )

    async def failed(_session: Any, context: SimpleNamespace, request: aiohttp.TraceRequestExceptionParams) -> None:
        end(context.span, error=type(request.exception).__name__)

    hooks = aiohttp.TraceConfig()
    hooks.on_request_start.append(started)
    hooks.on_request_end.append(ended)
    hooks.on_request_exception.append(failed)
    return hooks


def propagate(span: Span | None, headers: MutableMapping[str, str]) -> None:
    """Set the headers `traceparent` and `tracestate` of a call to another system.

    They describe `span`. If it is None, they describe the request, which is not recorded then, so the other system does
    not record the call either. Outside of a request, no header is set.
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


_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SIXTY_FOUR_BITS: Final = 2**64 - 1
_ABSENT: Final[Mapping[str, str]] = {}


def _uncounted(_outcome: str, _number: int) -> None:
    return None


class Unrecorded:
    """Context manager of a request that is not recorded. Calls to other systems get its trace id with the flag "not
    recorded".
    """

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

        # The library would log the text of each malformed `tracestate`, which any client can send.
        logging.getLogger("opentelemetry.trace.span").setLevel(logging.CRITICAL)
        self._context_of = trace.get_current_span
        self._propagator = TraceContextTextMapPropagator()
        # As in the SDK: the lower half of a trace id decides, so that gateways with the same ratio agree.
        self._bound = round(sample_ratio * (_SIXTY_FOUR_BITS + 1))
        self._trust_clients = trust_clients
        resource: Any = Resource.create({"service.name": service_name}).attributes
        self._sender = SpanSender(client, SpanEncoding(resource), count)

    def start(self) -> None:
        """Start the task that sends spans. Call it inside the event loop."""
        self._sender.start()

    def server_span(self, method: str, headers: Mapping[str, str]) -> Recording | Unrecorded:
        """Return a context manager that records the span of a request, if the request is in the sample.

        `headers` are `traceparent` and `tracestate`, if sent. Log lines inside have the id of the trace.
        """
        name = method if method in _METHODS else "_OTHER"
        if headers:
            given = self._context_of(self._propagator.extract(headers)).get_span_context()
            if given.is_valid:
                trace = Trace(given.trace_id, given.trace_state.to_header(), True, self._sender.add)
                # An untrusted client also chose the trace id, so a new id decides whether the request is recorded.
                if not (given.trace_flags.sampled if self._trust_clients else self._is_in_sample(new_trace_id())):
                    return Unrecorded(trace)
                return self._root(trace, name, SERVER, {"http.request.method": name}, given.span_id)
        return self._sampled(name, SERVER, {"http.request.method": name})

    def task_span(self, name: str, attributes: Attributes = _ABSENT) -> Recording | Unrecorded:
        """Return a context manager that records one run of a background task as a trace, if it is in the sample."""
        return self._sampled(name, INTERNAL, attributes)

    def _sampled(self, name: str, kind: int, attributes: Attributes) -> Recording | Unrecorded:
        trace = Trace(new_trace_id(), keep=self._sender.add)
        if not self._is_in_sample(trace.id):
            return Unrecorded(trace)
        return self._root(trace, name, kind, attributes, 0)

    def _is_in_sample(self, id: int) -> bool:
        return id & _SIXTY_FOUR_BITS < self._bound

    def _root(self, trace: Trace, name: str, kind: int, attributes: Attributes, parent: int) -> Recording:
        return Recording(Span(trace, new_span_id(), parent, name, kind, time_ns(), attributes, parent != 0))

    async def close(self) -> None:
        """Send the recorded spans. Return after at most 3 seconds; spans that were not sent are lost."""
        await self._sender.close()
