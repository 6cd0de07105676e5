# SPDX-License-Identifier: Apache-2.0
"""Metrics reports: stored as rows, accepted from callers that may scan or commit (`reportMetrics`)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stack.world import Table, World, error_of, error_triple

SCAN: dict[str, Any] = {
    "report-type": "scan-report",
    "table-name": "ns.t",
    "snapshot-id": 7,
    "filter": {"type": "gt", "term": "id", "value": 5},
    "schema-id": 0,
    "projected-field-ids": [1, 2],
    "projected-field-names": ["id", "word"],
    "metrics": {"result-data-files": {"unit": "count", "value": 3}},
    "metadata": {"engine-name": "spark"},
}
COMMIT: dict[str, Any] = {
    "report-type": "commit-report",
    "table-name": "ns.t",
    "snapshot-id": 9,
    "sequence-number": 2,
    "operation": "append",
    "metrics": {"added-data-files": {"unit": "count", "value": 1}},
}


def _kept(world: World, table: Table) -> list[Any]:
    return world.sql(
        "select kind, snapshot_id, reported_by, report::text from table_reports where table_id = $1 order by id",
        table.uuid,
    )


def test_metrics_reports_are_stored_unchanged(world: World, ns: str) -> None:
    table = world.table(ns)
    for report in (SCAN, COMMIT):
        answer = world.admin.post(f"{table.path}/metrics", report)
        assert (answer.status_code, answer.content) == (204, b"")
    scan, commit = _kept(world, table)
    assert (scan["kind"], scan["snapshot_id"], scan["reported_by"]) == ("scan-report", 7, world.admin.id)
    assert json.loads(scan["report"]) == SCAN
    assert commit["kind"] == "commit-report"
    assert json.loads(commit["report"]) == {**COMMIT, "metadata": None}


def test_readers_report_scans_and_only_writers_report_commits(world: World, ns: str) -> None:
    table = world.table(ns)
    path = f"{table.path}/metrics"
    assert error_triple(world.carol.post(path, SCAN))[:2] == (404, "NoSuchTableException")
    world.grant("describe", world.carol, "table", table.uuid)
    assert world.carol.post(path, SCAN).status_code == 403
    world.grant("select", world.carol, "table", table.uuid)
    assert world.carol.post(path, SCAN).status_code == 204
    assert world.carol.post(path, COMMIT).status_code == 403
    world.grant("modify", world.carol, "table", table.uuid)
    assert world.carol.post(path, COMMIT).status_code == 204
    assert [row["reported_by"] for row in _kept(world, table)] == [world.carol.id] * 2


def test_metrics_report_of_a_missing_table_is_404(world: World, ns: str) -> None:
    answer = world.admin.post(f"{world.root}/namespaces/{ns}/tables/none/metrics", SCAN)
    assert error_triple(answer)[:2] == (404, "NoSuchTableException")


@pytest.mark.parametrize(
    "report",
    [
        {},
        {**SCAN, "report-type": "other"},
        {key: value for key, value in SCAN.items() if key != "snapshot-id"},
        {**SCAN, "snapshot-id": "7"},
        {**SCAN, "snapshot-id": 2**63},
        {**COMMIT, "metrics": []},
        {**SCAN, "table-name": "a\x00b"},
    ],
)
def test_malformed_metrics_report_is_400(world: World, ns: str, report: dict[str, Any]) -> None:
    table = world.table(ns)
    assert world.admin.post(f"{table.path}/metrics", report).status_code == 400
    assert _kept(world, table) == []


def test_a_report_that_is_too_large_is_413(world: World, ns: str) -> None:
    table = world.table(ns)
    answer = world.admin.post(f"{table.path}/metrics", {**SCAN, "projected-field-names": ["x" * 1000] * 300})
    assert error_of(answer)["code"] == 413
    assert _kept(world, table) == []


def test_metrics_endpoint_is_advertised(world: World) -> None:
    config = world.admin.get(f"/catalog/v1/config?warehouse={world.ready.warehouse}").json()
    assert "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics" in config["endpoints"]
