# SPDX-License-Identifier: Apache-2.0
"""A collector for tests: receives spans and metrics by OTLP over HTTP, and keeps them."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.servers.loopback import Reply, Request, serving


class Collector:
    """The received spans and metrics, and the headers of the last request."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: list[Any] = []
        self.headers: dict[str, str] = {}

    def receive(self, path: str, body: bytes) -> None:
        """Keep the contents of one request."""
        if path == "/v1/metrics":
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in resource.scope_metrics:
                    self.metrics += scope.metrics
            return
        for spans in ExportTraceServiceRequest.FromString(body).resource_spans:
            for each in spans.scope_spans:
                self.spans += each.spans

    def trace(self, trace_id: str, *, parent: str) -> list[Any]:
        """Return the spans of a trace by their start. Wait for the span of the request, which ends last.

        `parent` is the id of its parent.
        """

        def complete() -> list[Any]:
            found = [span for span in list(self.spans) if span.trace_id.hex() == trace_id]
            return found if any(span.parent_span_id.hex() == parent for span in found) else []

        return sorted(self.wait(complete), key=lambda span: int(span.start_time_unix_nano))

    def wait(self, find: Callable[[], list[Any]]) -> list[Any]:
        """Return what `find` returns as soon as it is not empty."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if found := find():
                return found
            time.sleep(0.1)
        raise AssertionError(f"nothing of this was received, only {[span.name for span in self.spans]}")


def attributes(span: Any) -> dict[str, Any]:
    """Return the attributes of a span as values of Python."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


@contextmanager
def collector() -> Iterator[tuple[Collector, str]]:
    """Context manager. Yield (collector, its address without a path)."""
    kept = Collector()

    def answer(request: Request) -> Reply:
        kept.headers = request.headers
        zipped = request.headers.get("content-encoding") == "gzip"
        kept.receive(request.path, gzip.decompress(request.body) if zipped else request.body)
        return 200, {}, b""

    with serving(answer) as service:
        yield kept, service.url
