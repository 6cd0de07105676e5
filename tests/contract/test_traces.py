# SPDX-License-Identifier: Apache-2.0
"""Traces of a running gateway, received by a collector of the test."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.servers.otlp import attributes, collector
from tests.support.servers.toxic import second_gateway
from tests.support.stack.lifecycle import until
from tests.support.stack.world import Person, World

pytestmark = pytest.mark.servers

LOAD, COMMIT, ABSENT, UNRECORDED = (f"{digit}af7651916cd43dd8448eb211c80319c" for digit in "0123")
CLIENT_SPAN = "b7ad6b7169203331"
ROUTE = "/catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}"


def _edges(spans: list[Any]) -> set[tuple[str, str]]:
    """Return (name of the parent, name) of each span; the parent outside of the gateway is `client`."""
    names = {span.span_id: span.name for span in spans} | {bytes.fromhex(CLIENT_SPAN): "client"}
    return {(names[span.parent_span_id], span.name) for span in spans}


def _audited_traces(world: World, answer: httpx.Response) -> set[str | None]:
    """Return the traces in the audit records of a request. The records of refusals are written later."""
    statement = "select convert_from(record, 'utf8')::jsonb ->> 'trace_id' as id from audit_log where request_id = $1"
    request = answer.headers["x-request-id"]
    until(lambda: bool(world.sql(statement, request)), "the request has no audit record")
    return {row["id"] for row in world.sql(statement, request)}


def _statements(spans: list[Any]) -> set[str]:
    return {attributes(span)["db.query.summary"] for span in spans if span.name == "postgresql.statement"}


def test_requests_are_traced_with_their_calls_below_them(world: World, ns: str, tmp_path: Path) -> None:
    table = world.table(ns)
    with (
        collector() as (received, address),
        second_gateway(
            world.ready,
            tmp_path / "gateway.log",
            TRACING__ENDPOINT=f"{address}/v1/traces",
            TRACING__HEADERS="x-key=a secret",
            TRACING__TRUST_CLIENTS="true",
        ) as (base, _),
    ):
        person = Person("admin", world.admin.id, world.admin.token, base)

        def parent(trace: str) -> dict[str, str]:
            return {"traceparent": f"00-{trace}-{CLIENT_SPAN}-01"}

        loaded = person.get(table.path, headers={**parent(LOAD), "x-iceberg-access-delegation": "vended-credentials"})
        change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
        committed = person.post(table.path, change, headers=parent(COMMIT))
        absent = person.get(f"{table.path}_absent", headers=parent(ABSENT))
        assert [answer.status_code for answer in (loaded, committed, absent)] == [200, 200, 404]
        unrecorded = person.get(f"{table.path}_absent", headers={"traceparent": f"00-{UNRECORDED}-{CLIENT_SPAN}-00"})
        traces = {LOAD: loaded, COMMIT: committed, ABSENT: absent, UNRECORDED: unrecorded}
        assert {trace: _audited_traces(world, answer) for trace, answer in traces.items()} == {t: {t} for t in traces}

        load, commit, refused = (received.trace(each, parent=CLIENT_SPAN) for each in (LOAD, COMMIT, ABSENT))
        assert _edges(load) >= {
            ("client", "load_table"),
            ("load_table", "door.admit"),
            ("door.admit", "postgresql.resolve"),
            ("postgresql.resolve", "postgresql.statement"),
            ("door.admit", "openfga.check"),
            ("openfga.check", "openfga.http batch-check"),
            ("door.admit", "opa.decide"),
            ("opa.decide", "opa.http decisions"),
            ("load_table", "store.session"),
            ("load_table", "audit.commit"),
        }
        assert _edges(commit) >= {
            ("client", "commit_table"),
            ("commit_table", "door.admit"),
            ("commit_table", "store.put"),
            ("commit_table", "postgresql.transaction"),
            ("postgresql.transaction", "postgresql.statement"),
        }
        assert any(text.startswith("UPDATE tables") for text in _statements(commit)), _statements(commit)
        (transaction,) = (span for span in commit if span.name == "postgresql.transaction")
        assert [event.name for event in transaction.events] == ["commit"]
        for spans, status in ((load, 200), (refused, 404)):
            (request,) = (span for span in spans if span.name == "load_table")
            assert attributes(request) == {
                "http.request.method": "GET",
                "http.route": ROUTE,
                "url.scheme": "http",
                "http.response.status_code": status,
                "lakegate.operation": "load_table",
            }
        (door,) = (attributes(span) for span in load if span.name == "door.admit")
        assert (door["lakegate.outcome"], door["lakegate.determined_by"]) == ("allowed", "both")
        # A refusal is an answer: an error rate of spans must not count it.
        assert {span.name: span.status.code for span in refused}["door.admit"] == 0

        assert received.headers["x-key"] == "a secret"
        person.http.close()
        sent = str(received.spans)
        assert not [text for text in (world.admin.token, table.path, table.name, ns, table.location) if text in sent]


def test_metrics_are_exported_as_they_are_served(world: World, tmp_path: Path) -> None:
    """The main process exports the sum over all workers. The export at the end contains the last requests."""
    with collector() as (received, address):
        with second_gateway(
            world.ready, tmp_path / "gateway.log", METRICS_EXPORT__ENDPOINT=f"{address}/v1/metrics", WORKERS="2"
        ) as (base, process):
            person = Person("admin", world.admin.id, world.admin.token, base)
            for _ in range(20):
                assert person.get("/catalog/v1/config?warehouse=absent").status_code == 404
            person.http.close()
            process.terminate()
            process.wait(60)
        requests = received.wait(lambda: [each for each in received.metrics if each.name == "lakegate_http_requests"])
        seconds = [each for each in received.metrics if each.name == "lakegate_http_request_duration_seconds"]
    assert sum(point.as_double for point in requests[-1].sum.data_points if _of_config(point)) == 20
    assert requests[-1].sum.is_monotonic
    (histogram,) = (point for point in seconds[-1].histogram.data_points if _of_config(point))
    assert (histogram.count, sum(histogram.bucket_counts)) == (20, 20)
    assert len(histogram.bucket_counts) == len(histogram.explicit_bounds) + 1
    assert histogram.sum > 0


def _of_config(point: Any) -> bool:
    return attributes(point).get("operation") == "get_config"


def test_requests_and_the_shutdown_do_not_wait_for_a_collector_that_never_answers(world: World, tmp_path: Path) -> None:
    """A thread that is no daemon, or a handler at exit, would keep the worker until it is killed, which is logged."""
    log = tmp_path / "gateway.log"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with second_gateway(
            world.ready,
            log,
            TRACING__ENDPOINT=f"{endpoint}/v1/traces",
            METRICS_EXPORT__ENDPOINT=f"{endpoint}/v1/metrics",
            METRICS_EXPORT__INTERVAL="0.1",
        ) as (base, process):
            person = Person("admin", world.admin.id, world.admin.token, base)
            for _ in range(50):
                assert person.get("/catalog/v1/config?warehouse=absent").status_code == 404
            person.http.close()
            process.terminate()
            process.wait(60)
    assert "kill" not in log.read_text().lower()
