# SPDX-License-Identifier: Apache-2.0
"""Traces of a running gateway, received by a collector of the test."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.contract.world import Person, World
from tests.integration.toxic import second_gateway

pytestmark = pytest.mark.servers

LOAD, COMMIT = "0af7651916cd43dd8448eb211c80319c", "1bf7651916cd43dd8448eb211c80319c"
CLIENT_SPAN = "b7ad6b7169203331"


class Collector:
    """Receiver of OTLP over HTTP that keeps the spans and the headers of the last request."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.headers: dict[str, str] = {}

    def of(self, trace: str) -> dict[str, Any]:
        """Return the spans of a trace by name. Wait for its span of the request, which ends last."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = {span.name: span for span in list(self.spans) if span.trace_id.hex() == trace}
            if any(span.parent_span_id.hex() == CLIENT_SPAN for span in found.values()):
                return found
            time.sleep(0.1)
        raise AssertionError(f"no span of the request was received, only {[span.name for span in self.spans]}")


@contextmanager
def _collector() -> Iterator[tuple[Collector, str]]:
    kept = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.headers = dict(self.headers)
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    kept.spans += scope.spans
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield kept, f"http://127.0.0.1:{server.server_port}/v1/traces"
        server.shutdown()


def test_a_load_and_a_commit_are_traced_with_their_calls_below_them(world: World, ns: str, tmp_path: Path) -> None:
    table = world.table(ns)
    with (
        _collector() as (collector, endpoint),
        second_gateway(
            world.ready, tmp_path / "gateway.log", TRACING__ENDPOINT=endpoint, TRACING__HEADERS="x-key=a secret"
        ) as (base, _),
    ):
        person = Person("admin", world.admin.id, world.admin.token, base)
        loaded = person.get(table.path, headers={"traceparent": f"00-{LOAD}-{CLIENT_SPAN}-01"})
        changed = person.post(
            table.path,
            {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]},
            headers={"traceparent": f"00-{COMMIT}-{CLIENT_SPAN}-01"},
        )
        assert (loaded.status_code, changed.status_code) == (200, 200)
        for trace, operation in ((LOAD, "load_table"), (COMMIT, "commit_table")):
            spans = collector.of(trace)
            assert {operation, "postgresql.resolve", "openfga.check", "opa.decide"} <= set(spans)
            assert spans[operation].parent_span_id.hex() == CLIENT_SPAN
            for name in ("postgresql.resolve", "openfga.check", "opa.decide"):
                assert spans[name].parent_span_id == spans[operation].span_id, name
        assert collector.headers["x-key"] == "a secret"
        person.http.close()
        sent = str(collector.spans)
        assert not [text for text in (world.admin.token, table.path, ns) if text in sent]
