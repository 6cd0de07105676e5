# SPDX-License-Identifier: Apache-2.0
"""Traces of requests, sent to an OpenTelemetry collector by OTLP over HTTP.

The libraries are imported by `Tracer`, which is created only if a collector is set. A thread sends the spans in batches
from a bounded queue (`span_queue`): if the collector is slow or down, spans are lost and requests are not delayed.
Attributes contain ids, counts and names of operations, never tokens, bodies, queries or locations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

from gateway.telemetry.logs import trace_context
from gateway.telemetry.span_queue import Count, SpanQueue

Attributes = Mapping[str, str | int | bool]

_SEND_SECONDS = 5
_FLUSH_SECONDS = 3.0
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def _uncounted(_outcome: str, _number: int) -> None:
    return None


class Tracer:
    """Creates the spans of one process. `exporter` replaces the collector in tests.

    `certificates` is a file or directory of CA certificates; None means those of the library. `count` receives the
    number of spans by outcome.
    """

    def __init__(
        self,
        *,
        endpoint: str,
        headers: Mapping[str, str],
        sample_ratio: float,
        service_name: str,
        certificates: str | None = None,
        count: Count = _uncounted,
        exporter: Any = None,
    ) -> None:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SpanExportResult
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        if exporter is None:
            exporter = OTLPSpanExporter(
                endpoint=endpoint, headers=dict(headers) or None, timeout=_SEND_SECONDS, certificate_file=certificates
            )
        self._trace = trace
        self._propagator = TraceContextTextMapPropagator()
        self._exporter = exporter
        self._queue = SpanQueue(lambda spans: exporter.export(spans) is SpanExportResult.SUCCESS, count)
        provider = TracerProvider(
            resource=Resource.create({"service.name": service_name}),
            sampler=ParentBased(TraceIdRatioBased(sample_ratio)),
            shutdown_on_exit=False,  # the exit of the process must not wait for a collector
        )
        # The queue has the methods of a processor. Its module imports no library, so it cannot inherit from it.
        provider.add_span_processor(self._queue)  # type: ignore[arg-type]
        self._tracer = provider.get_tracer("lakegate")

    @contextmanager
    def span(
        self, name: str, attributes: Attributes | None = None, *, refusals: tuple[type[BaseException], ...] = ()
    ) -> Iterator[Any]:
        """Context manager. Record a span below the current one. Record nothing outside of a request, or if the request
        is not recorded: a span that is not sent costs time too.

        An exception sets only its type, never its text. One of the types `refusals` is an answer, not a failure.
        """
        if not self._trace.get_current_span().is_recording():
            yield self._trace.INVALID_SPAN
            return
        with self._tracer.start_as_current_span(
            name, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except refusals as refusal:
                span.set_attribute("lakegate.refusal", type(refusal).__name__)
                raise
            except BaseException as error:
                self._fail(span, type(error).__name__)
                raise

    @contextmanager
    def server_span(self, method: str, headers: Mapping[str, str]) -> Iterator[Any]:
        """Context manager. Record the span of a request. `headers` are `traceparent` and `tracestate`, if sent.

        Log lines inside have the id of the trace.
        """
        known = method if method in _METHODS else "_OTHER"
        with (
            self._tracer.start_as_current_span(
                known,
                context=self._propagator.extract(headers),
                kind=self._trace.SpanKind.SERVER,
                attributes={"http.request.method": known},
                record_exception=False,
                set_status_on_exception=False,
            ) as span,
            trace_context(trace_id=f"{span.get_span_context().trace_id:032x}"),
        ):
            yield span

    def name_request(self, operation: str, status: int) -> None:
        """Set the operation and the status of the response on the current span, that of a request."""
        span = self._trace.get_current_span()
        span.update_name(operation)
        span.set_attribute("lakegate.operation", operation)
        span.set_attribute("http.response.status_code", status)
        if status >= 500:
            self._fail(span, str(status))

    def annotate(self, attributes: Attributes) -> None:
        """Set attributes on the current span."""
        self._trace.get_current_span().set_attributes(attributes)

    def mark(self, event: str) -> None:
        """Record on the current span that `event` happened now."""
        self._trace.get_current_span().add_event(event)

    def begin(self, name: str, attributes: Attributes) -> Any:
        """Return a span of a call to another system, below the current span; None if that is not recorded.

        It does not become the current span, and the caller must pass it to `end`.
        """
        if not self._trace.get_current_span().is_recording():
            return None
        return self._tracer.start_span(name, kind=self._trace.SpanKind.CLIENT, attributes=attributes)

    def end(self, span: Any, *, error: str | None = None, attributes: Attributes | None = None) -> None:
        """End a span of `begin`. `error` is the type of an error. None as `span` is allowed."""
        if span is None:
            return
        if attributes is not None:
            span.set_attributes(attributes)
        if error is not None:
            self._fail(span, error)
        span.end()

    def propagate(self, span: Any, headers: MutableMapping[str, str]) -> None:
        """Set `traceparent` and `tracestate` in the headers of a call to another system.

        They are those of `span`. If it is None, they are those of the request, which is not recorded then: the other
        system does not record it either. Outside of a request, no header is set.
        """
        self._propagator.inject(headers, context=None if span is None else self._trace.set_span_in_context(span))

    def _fail(self, span: Any, kind: str) -> None:
        span.set_attribute("error.type", kind)
        span.set_status(self._trace.StatusCode.ERROR)

    async def close(self) -> None:
        """Send the recorded spans. Return after 3 seconds at the latest; the rest is lost."""
        self._queue.end()
        waited = 0.0
        while not self._queue.is_ended() and waited < _FLUSH_SECONDS:
            await asyncio.sleep(0.05)
            waited += 0.05
        self._exporter.shutdown()
