# SPDX-License-Identifier: Apache-2.0
"""Traces of a running gateway, received by a collector of the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.contract.world import Person, World
from tests.integration.toxic import second_gateway
from tests.otlp import attributes, collector

pytestmark = pytest.mark.servers

LOAD, COMMIT, ABSENT = (f"{digit}af7651916cd43dd8448eb211c80319c" for digit in "012")
CLIENT_SPAN = "b7ad6b7169203331"
ROUTE = "/catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}"


def _edges(spans: list[Any]) -> set[tuple[str, str]]:
    """Return (name of the parent, name) of each span; the parent outside of the gateway is `client`."""
    names = {span.span_id: span.name for span in spans} | {bytes.fromhex(CLIENT_SPAN): "client"}
    return {(names[span.parent_span_id], span.name) for span in spans}


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
