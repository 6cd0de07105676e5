# SPDX-License-Identifier: Apache-2.0
"""Traces: spans and their parents, headers of clients, no texts of errors, and a collector that does not answer."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog
from aiohttp import web
from aiohttp.test_utils import TestServer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from gateway import spans
from gateway.assembly.tracing import TracedApplication, open_tracer
from gateway.settings import SettingsError, load
from gateway.spans import Recording, known_trace_id
from gateway.telemetry.logs import configure_logging, get_logger
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.otlp_client import PROTOBUF, OtlpClient
from gateway.telemetry.span_sender import BATCH_SPANS, QUEUE_SPANS
from gateway.telemetry.tracing import client_spans
from tests.support.kept_spans import Kept, new_tracer
from tests.support.servers.otlp import attributes

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def _request(headers: list[tuple[bytes, bytes]], *, status: int = 200, fails: bool = False) -> dict[str, Any]:
    """Return the spans of one request by name. With `fails`, the request has a span that an exception ends."""
    kept = Kept()
    tracer = new_tracer(kept)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        try:
            with spans.span("openfga.check", {"lakegate.questions": 2}):
                if fails:
                    raise ValueError("secret text")
        except ValueError:
            pass
        spans.complete_request("load_table", status)

    traced = TracedApplication(app, tracer)

    async def unused(*_: Any) -> Any:
        raise AssertionError

    route = "/v1/{prefix}"
    scope: Any = {"type": "http", "method": "GET", "path_template": route, "headers": headers, "path": "/secret"}
    scope["query_string"] = b"secret=1"
    await traced(scope, unused, unused)
    lifespan: Any = {"type": "lifespan"}
    await traced(lifespan, unused, unused)
    return {span.name: span for span in kept.spans}


async def test_a_span_below_a_request_has_the_request_as_parent_and_is_sent_at_the_shutdown() -> None:
    named = await _request([])
    assert set(named) == {"load_table", "openfga.check"}
    assert named["load_table"].parent_span_id == b""
    assert named["openfga.check"].parent_span_id == named["load_table"].span_id
    assert attributes(named["openfga.check"]) == {"lakegate.questions": 2}
    assert attributes(named["load_table"]) == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.route": "/v1/{prefix}",
        "url.scheme": "http",
        "lakegate.operation": "load_table",
    }


async def test_the_trace_of_the_client_is_continued() -> None:
    named = await _request([(b"traceparent", PARENT.encode()), (b"tracestate", b"a=b")])
    assert named["load_table"].trace_id.hex() == named["openfga.check"].trace_id.hex() == PARENT.split("-")[1]
    assert named["load_table"].parent_span_id.hex() == PARENT.split("-")[2]
    assert named["load_table"].trace_state == "a=b"
    # OTLP: bit 8 says that the next one is known, bit 9 that the parent is in another process.
    assert (named["load_table"].flags >> 8, named["openfga.check"].flags >> 8) == (3, 1)


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
    assert (await _request(headers))["load_table"].parent_span_id == b""


@pytest.mark.parametrize("state", [b"!!! text of a client", b",".join(b"k%d=v" % number for number in range(40))])
async def test_a_malformed_state_is_left_out_and_not_logged(state: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """The header precedes the login: anybody could write a line of the log with each request."""
    named = await _request([(b"traceparent", PARENT.encode()), (b"tracestate", state)])
    assert named["load_table"].trace_id.hex() == PARENT[3:35]
    assert named["load_table"].trace_state == ""
    assert caplog.records == []


async def test_a_failed_span_has_the_type_of_the_error_and_not_its_text() -> None:
    span = (await _request([], fails=True))["openfga.check"]
    assert attributes(span)["error.type"] == "ValueError"
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert "secret" not in str(span)


class Port:
    """Object with a method that records a span of each call."""

    @spans.spanned("openfga.check", lambda _self, asked, **_: {"lakegate.questions": asked}, refusals=(LookupError,))
    async def check(self, asked: int, *, error: Exception | None = None) -> int:
        if error is not None:
            raise error
        return asked


async def test_a_decorated_method_records_its_attributes_and_refusals_in_a_recorded_request_only() -> None:
    kept = Kept()
    tracer = new_tracer(kept)
    assert await Port().check(1) == 1
    with tracer.server_span("GET", {}):
        assert await Port().check(2) == 2
        with pytest.raises(KeyError):
            await Port().check(3, error=KeyError("secret text"))
        with pytest.raises(ValueError):
            await Port().check(4, error=ValueError("secret text"))
    await tracer.close()
    *calls, request = kept.spans
    assert [attributes(span) for span in calls] == [
        {"lakegate.questions": 2},
        {"lakegate.questions": 3, "lakegate.refusal": "KeyError"},
        {"lakegate.questions": 4, "error.type": "ValueError"},
    ]
    assert [span.status.code for span in calls] == [0, 0, Status.STATUS_CODE_ERROR]
    assert {(span.name, span.parent_span_id) for span in calls} == {("openfga.check", request.span_id)}


def test_every_span_of_the_code_is_documented_and_every_documented_one_exists() -> None:
    """Dashboards select spans by these names."""
    root = Path(__file__).parents[3]
    texts = [path.read_text() for path in (root / "gateway").rglob("*.py")]
    code = {name for text in texts for name in re.findall(r'(?:span|spanned|begin)\(\s*"([a-z_]+\.[a-z_]+)"', text)}
    rows = [line for line in (root / "docs/telemetry.md").read_text().splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`([a-z_]+\.[a-z_]+)`", row.split("|")[1])}
    assert code == documented - {"task.tabular_purge"}


async def test_only_a_failure_of_the_server_is_an_error() -> None:
    assert (await _request([], status=403))["load_table"].status.code == Status.STATUS_CODE_UNSET
    assert (await _request([], status=503))["load_table"].status.code == Status.STATUS_CODE_ERROR


async def test_neither_spans_nor_the_shutdown_wait_for_a_collector_that_does_not_answer() -> None:
    """More spans than the queue holds are recorded. The listener accepts connections and never answers.

    Without the limit of `close`, the flush waits for the listener; with an unbounded wait, the test times out.
    """
    counts: Counter[str] = Counter()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1/traces"
        tracer = new_tracer(OtlpClient(url, encoding=PROTOBUF, headers={}, timeout=60, tls=None), counts)
        tracer.start()
        for _ in range(2):
            with tracer.server_span("GET", {}):
                for _ in range(QUEUE_SPANS):
                    with spans.span("openfga.check"):
                        pass
            await asyncio.sleep(0.1)
        await tracer.close()
    assert counts["dropped"] >= QUEUE_SPANS - 2 * BATCH_SPANS
    assert "sent" not in counts


async def test_sent_and_refused_spans_are_counted() -> None:
    """An exporter that raises must not end the thread: the spans after it would be lost."""

    class Failing(Kept):
        async def __call__(self, body: bytes) -> bytes:
            await super().__call__(body)
            if len(self.spans) == 1:
                raise ValueError
            partial = ExportTracePartialSuccess(rejected_spans=1)
            return bytes(ExportTraceServiceResponse(partial_success=partial).SerializeToString())

    counts: Counter[str] = Counter()
    kept = Failing()
    tracer = new_tracer(kept, counts)
    tracer.start()
    with tracer.server_span("GET", {}):
        pass
    while not counts:
        await asyncio.sleep(0.01)
    with tracer.server_span("GET", {}), spans.span("openfga.check"), spans.span("opa.decide"):
        pass
    await tracer.close()
    assert counts == {"failed": 2, "sent": 2}


async def test_no_span_is_recorded_outside_of_a_request_or_of_the_sample() -> None:
    """Background tasks use the same ports: each of their calls would be a trace of its own."""
    kept = Kept()
    tracer = new_tracer(kept)
    with spans.span("openfga.check"):
        pass
    assert spans.begin("openfga.http check", {}) is None
    spans.end(None)
    tracer = new_tracer(kept, trust_clients=True)
    with tracer.server_span("GET", {"traceparent": PARENT[:-2] + "00"}), spans.span("openfga.check"):
        pass
    await tracer.close()
    assert kept.spans == []


@pytest.mark.parametrize("flag", ["00", "01"])
@pytest.mark.parametrize(("ratio", "recorded"), [(0.0, False), (1.0, True)])
async def test_traceparent_of_a_client_that_is_not_trusted_decides_no_sampling(
    flag: str, ratio: float, recorded: bool
) -> None:
    """Neither by its flag nor by the id of its trace, which the client chooses."""
    tracer = new_tracer(Kept(), ratio=ratio)
    for trace in ("0" * 31 + "1", "f" * 32):
        span = tracer.server_span("GET", {"traceparent": f"00-{trace}-{'b' * 16}-{flag}"})
        assert isinstance(span, Recording) is recorded
        with span:
            assert known_trace_id() == trace, "the trace is continued"
    await tracer.close()


async def test_a_method_that_a_client_invents_is_not_recorded() -> None:
    kept = Kept()
    tracer = new_tracer(kept)
    with tracer.server_span("secret", {}):
        pass
    await tracer.close()
    assert kept.spans[0].name == attributes(kept.spans[0])["http.request.method"] == "_OTHER"


async def test_a_call_to_an_engine_is_a_span_and_carries_its_id() -> None:
    """The engine's own spans must lie below the call, and the call below the check."""
    kept = Kept()
    tracer = new_tracer(kept, trust_clients=True)
    seen: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers.get("traceparent"))
        return web.Response(status=503)

    app = web.Application()
    app.router.add_post("/stores/some/batch-check", answer)
    async with TestServer(app) as server, aiohttp.ClientSession(trace_configs=[client_spans("fga")]) as session:
        url = server.make_url("/stores/some/batch-check")
        async with session.post(url):
            pass
        with tracer.server_span("GET", {}), spans.span("openfga.check"):
            async with session.post(url):
                pass
        with tracer.server_span("GET", {"traceparent": PARENT[:-2] + "00"}):
            async with session.post(url):
                pass
        await server.close()
        with tracer.server_span("GET", {}), pytest.raises(aiohttp.ClientConnectionError):
            await session.post(url)
    await tracer.close()
    first, second = (span for span in kept.spans if span.name == "fga.http batch-check")
    check = next(span for span in kept.spans if span.name == "openfga.check")
    assert first.parent_span_id == check.span_id
    assert seen[0] is None
    # Not recorded: without a header, the engine would record a trace of its own.
    assert str(seen[2]).startswith(PARENT[:36]) and str(seen[2]).endswith("-00")
    assert str(seen[1]).split("-")[1:3] == [first.trace_id.hex(), first.span_id.hex()]
    assert (attributes(first)["error.type"], attributes(first)["http.response.status_code"]) == ("503", 503)
    assert attributes(second)["error.type"] in {"ServerDisconnectedError", "ClientConnectorError"}


@pytest.fixture
def logged() -> Iterator[io.BytesIO]:
    """Redirect the logging of the process during a test. Later tests must find the handlers as they were."""
    root, stream = logging.getLogger(), io.BytesIO()
    before = (list(root.handlers), root.level)
    configure_logging(stream=stream)
    yield stream
    logging.captureWarnings(False)
    structlog.reset_defaults()
    root.handlers, root.level = before


async def test_log_lines_of_a_request_have_the_id_of_its_trace_and_later_ones_not(logged: io.BytesIO) -> None:
    tracer = new_tracer(Kept())
    try:
        with tracer.server_span("GET", {"traceparent": PARENT}):
            get_logger("test").info("request.served")
        get_logger("test").info("task.ended")
    finally:
        await tracer.close()
    first, second = map(json.loads, logged.getvalue().splitlines())
    assert first["trace_id"] == PARENT.split("-")[1]
    assert "trace_id" not in second


def test_without_an_endpoint_there_is_no_tracer() -> None:
    assert open_tracer(load({"LAKEGATE__TRACING__HEADERS": "a=b"}), Metrics()) is None


def test_malformed_headers_are_refused_without_their_text() -> None:
    settings = load({"LAKEGATE__TRACING__ENDPOINT": "http://localhost:1/", "LAKEGATE__TRACING__HEADERS": "hidden"})
    with pytest.raises(SettingsError, match="name=value") as refused:
        open_tracer(settings, Metrics())
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("endpoint", ["", "http://localhost:1/v1/traces"])
def test_only_an_application_with_a_collector_imports_the_libraries(endpoint: str) -> None:
    """The application is created as in a worker process. OpenFGA's client imports the interface of the library."""
    code = (
        "import sys; from gateway.app import create_app; made = create_app(); "
        "print(type(made).__name__, *(n for n in ('opentelemetry.proto', 'opentelemetry.sdk') if n in sys.modules))"
    )
    settings = {
        "LAKEGATE__PG_DATABASE_URL_WRITE": "postgresql://u:p@db/lakegate",
        "LAKEGATE__PG_ENCRYPTION_KEY": "k",
        "LAKEGATE__OPENID_AUDIENCE": "lakegate",
        "LAKEGATE__OPENID_PROVIDER_URI": "https://issuer.example",
    }
    if endpoint:
        settings["LAKEGATE__TRACING__ENDPOINT"] = endpoint
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **settings}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    traced = ["TracedApplication", "opentelemetry.proto", "opentelemetry.sdk"]
    assert done.stdout.split() == (traced if endpoint else ["RawPath"])
