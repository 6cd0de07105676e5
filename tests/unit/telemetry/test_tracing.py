# SPDX-License-Identifier: Apache-2.0
"""Traces: spans and their parents, headers of clients, no texts of errors, and a collector that does not answer."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from gateway.assembly.tracing import TracedApplication, TracedObserver, open_tracer
from gateway.settings import SettingsError, load
from gateway.telemetry.tracing import Tracer

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Kept(SpanExporter):
    """Exporter that keeps all spans."""

    def __init__(self) -> None:
        self.spans: list[Any] = []

    def export(self, spans: Any) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS


class Counted:
    """Observer that keeps the statuses of responses."""

    def __init__(self) -> None:
        self.statuses: list[int] = []

    def request_answered(self, *, method: str, operation: str | None, status: int, seconds: float) -> None:
        self.statuses.append(status)


def _tracer(exporter: SpanExporter | None = None, endpoint: str = "http://localhost/v1/traces") -> Tracer:
    return Tracer(endpoint=endpoint, headers={}, sample_ratio=1.0, service_name="lakegate", exporter=exporter)


async def _request(headers: list[tuple[bytes, bytes]], *, status: int = 200, fails: bool = False) -> dict[str, Any]:
    """Return the spans of one request by name. With `fails`, the request has a span that an exception ends."""
    kept, counted = Kept(), Counted()
    tracer = _tracer(kept)
    observer = TracedObserver(counted, tracer)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        try:
            with tracer.span("openfga.check", {"lakegate.questions": 2}):
                if fails:
                    raise ValueError("secret text")
        except ValueError:
            pass
        observer.request_answered(method="GET", operation="load_table", status=status, seconds=0.1)

    traced = TracedApplication(app, tracer)

    async def unused(*_: Any) -> Any:
        raise AssertionError

    scope: Any = {"type": "http", "method": "GET", "headers": headers, "path": "/secret", "query_string": b"secret=1"}
    await traced(scope, unused, unused)
    lifespan: Any = {"type": "lifespan"}
    await traced(lifespan, unused, unused)
    assert counted.statuses == [status]
    return {span.name: span for span in kept.spans}


async def test_a_span_below_a_request_has_the_request_as_parent_and_is_sent_at_the_shutdown() -> None:
    spans = await _request([])
    assert set(spans) == {"load_table", "openfga.check"}
    assert spans["load_table"].parent is None
    assert spans["openfga.check"].parent.span_id == spans["load_table"].context.span_id
    assert dict(spans["load_table"].attributes) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "lakegate.operation": "load_table",
    }


async def test_the_trace_of_the_client_is_continued() -> None:
    spans = await _request([(b"traceparent", PARENT.encode()), (b"tracestate", b"a=b")])
    assert f"{spans['load_table'].context.trace_id:032x}" == PARENT.split("-")[1]
    assert f"{spans['load_table'].parent.span_id:016x}" == PARENT.split("-")[2]


@pytest.mark.parametrize(
    "headers",
    [
        [(b"traceparent", b"00-zz")],
        [(b"traceparent", b"\xff" * 55)],
        [(b"traceparent", PARENT.encode() + b"-" + b"a" * 600)],
        [(b"traceparent", PARENT.encode()), (b"traceparent", PARENT.replace("b7", "c7").encode())],
    ],
)
async def test_a_malformed_long_or_repeated_parent_starts_a_new_trace(headers: list[tuple[bytes, bytes]]) -> None:
    assert (await _request(headers))["load_table"].parent is None


async def test_a_failed_span_has_the_type_of_the_error_and_not_its_text() -> None:
    span = (await _request([], fails=True))["openfga.check"]
    assert span.attributes["error.type"] == "ValueError"
    assert not span.status.is_ok
    assert "secret" not in span.to_json()


async def test_only_a_failure_of_the_server_is_an_error() -> None:
    assert (await _request([], status=403))["load_table"].status.status_code.name == "UNSET"
    assert (await _request([], status=503))["load_table"].status.status_code.name == "ERROR"


async def test_neither_spans_nor_the_shutdown_wait_for_a_collector_that_does_not_answer() -> None:
    """More spans than the queue holds are recorded. The listener accepts connections and never answers.

    Without the limit of `close`, the flush waits for the listener; with an unbounded wait, the test times out.
    """
    with socket.create_server(("127.0.0.1", 0)) as silent:
        tracer = _tracer(endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}/v1/traces")
        for _ in range(5000):
            with tracer.span("openfga.check"):
                pass
        await tracer.close()


def test_without_an_endpoint_there_is_no_tracer() -> None:
    assert open_tracer(load({"LAKEGATE__TRACING__HEADERS": "a=b"})) is None


def test_malformed_headers_are_refused_without_their_text() -> None:
    settings = load({"LAKEGATE__TRACING__ENDPOINT": "http://localhost:1/", "LAKEGATE__TRACING__HEADERS": "hidden"})
    with pytest.raises(SettingsError, match="name=value") as refused:
        open_tracer(settings)
    assert "hidden" not in str(refused.value)
