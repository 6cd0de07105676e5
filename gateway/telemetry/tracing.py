# SPDX-License-Identifier: Apache-2.0
"""Traces of requests, sent to an OpenTelemetry collector by OTLP over HTTP.

The libraries are imported by `Tracer`, which is created only if a collector is set. A thread of the library sends the
spans in batches. Its queue is bounded: if the collector is slow or down, spans are lost and requests are not delayed.
Attributes contain ids, counts and names of operations, never tokens, bodies, queries or locations.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Attributes = Mapping[str, str | int | bool]

_QUEUE = 2048
_SEND_SECONDS = 5
_FLUSH_SECONDS = 3.0


class Tracer:
    """Creates the spans of one process. `exporter` replaces the collector in tests.

    `certificates` is a file or directory of CA certificates; None means those of the library.
    """

    def __init__(
        self,
        *,
        endpoint: str,
        headers: Mapping[str, str],
        sample_ratio: float,
        service_name: str,
        certificates: str | None = None,
        exporter: Any = None,
    ) -> None:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        if exporter is None:
            exporter = OTLPSpanExporter(
                endpoint=endpoint, headers=dict(headers), timeout=_SEND_SECONDS, certificate_file=certificates
            )
        self._trace = trace
        self._propagator = TraceContextTextMapPropagator()
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": service_name}),
            sampler=ParentBased(TraceIdRatioBased(sample_ratio)),
            shutdown_on_exit=False,  # the exit of the process must not wait for a collector
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(
                exporter, max_queue_size=_QUEUE, schedule_delay_millis=1000, export_timeout_millis=_SEND_SECONDS * 1000
            )
        )
        self._tracer = self._provider.get_tracer("lakegate")

    @contextmanager
    def span(self, name: str, attributes: Attributes | None = None) -> Iterator[Any]:
        """Context manager. Record a span below the current one. An exception sets only its type, never its text."""
        with self._tracer.start_as_current_span(
            name, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except BaseException as error:
                self._fail(span, type(error).__name__)
                raise

    @contextmanager
    def server_span(self, method: str, headers: Mapping[str, str]) -> Iterator[Any]:
        """Context manager. Record the span of a request. `headers` are `traceparent` and `tracestate`, if sent."""
        with self._tracer.start_as_current_span(
            method,
            context=self._propagator.extract(headers),
            kind=self._trace.SpanKind.SERVER,
            attributes={"http.request.method": method},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield span

    def name_request(self, operation: str, status: int) -> None:
        """Set the operation and the status of the response on the current span, that of a request."""
        span = self._trace.get_current_span()
        span.update_name(operation)
        span.set_attribute("lakegate.operation", operation)
        span.set_attribute("http.response.status_code", status)
        if status >= 500:
            self._fail(span, str(status))

    def _fail(self, span: Any, kind: str) -> None:
        span.set_attribute("error.type", kind)
        span.set_status(self._trace.StatusCode.ERROR)

    async def close(self) -> None:
        """Send the recorded spans. Return after 3 seconds at the latest; the rest is lost."""
        # A daemon thread: neither the loop nor the interpreter waits for it.
        done = threading.Thread(target=self._provider.shutdown, name="traces-flush", daemon=True)
        done.start()
        waited = 0.0
        while done.is_alive() and waited < _FLUSH_SECONDS:
            await asyncio.sleep(0.05)
            waited += 0.05
