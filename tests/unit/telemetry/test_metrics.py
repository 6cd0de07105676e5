# SPDX-License-Identifier: Apache-2.0
"""Metrics with the names that operators use in alerts, in one process and in several."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.metrics import Metrics

FILL = """
import sys
from pathlib import Path
from gateway.telemetry.metrics import Metrics
metrics = Metrics(multiprocess_dir=Path(sys.argv[1]))
for _ in range(3):
    metrics.request_answered(method="GET", operation="LoadTable", status=200, seconds=0.01)
metrics.outbox_counted(int(sys.argv[2]))
if sys.argv[2] == "9":
    print(metrics.render().decode())
"""


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_each_metric_has_its_documented_name_and_labels() -> None:
    metrics = Metrics()
    metrics.request_answered(method="GET", operation="LoadTable", status=200, seconds=0.02)
    metrics.decided(operation="LoadTable", outcome="hidden", determined_by="openfga")
    metrics.decision_took("opa", 0.004)
    metrics.session_took("ok", 0.1)
    metrics.audited("group", 3)
    metrics.outbox_counted(7)
    metrics.tuple_delivered(0.05)
    found = samples(metrics.render().decode())
    assert (
        found["lakegate_http_requests_total", (("method", "GET"), ("operation", "LoadTable"), ("status", "200"))] == 1
    )
    assert found["lakegate_http_request_duration_seconds_count", (("operation", "LoadTable"),)] == 1
    decision = (("determined_by", "openfga"), ("operation", "LoadTable"), ("outcome", "hidden"))
    assert found["lakegate_decisions_total", decision] == 1
    assert found["lakegate_decision_duration_seconds_sum", (("engine", "opa"),)] == 0.004
    assert found["lakegate_sts_duration_seconds_count", (("outcome", "ok"),)] == 1
    assert found["lakegate_audit_records_total", (("durability", "group"),)] == 3
    assert found["lakegate_outbox_pending", ()] == 7
    assert found["lakegate_tuple_delivery_duration_seconds_count", ()] == 1


def test_clients_cannot_create_time_series() -> None:
    metrics = Metrics()
    for number in range(50):
        metrics.request_answered(method=f"EVIL{number}", operation=None, status=405, seconds=0)
    names = [key for key in samples(metrics.render().decode()) if key[0] == "lakegate_http_requests_total"]
    assert names == [
        ("lakegate_http_requests_total", (("method", "OTHER"), ("operation", "unmatched"), ("status", "405")))
    ]


def test_two_metric_registries_are_independent() -> None:
    one, other = Metrics(), Metrics()
    one.outbox_counted(5)
    assert samples(other.render().decode())["lakegate_outbox_pending", ()] == 0


def test_metrics_are_summed_over_all_workers(tmp_path: Path) -> None:
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for pending in ("4", "9"):
        ran = subprocess.run(
            [sys.executable, "-c", FILL, str(tmp_path), pending],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    found = samples(ran.stdout)
    assert (
        found["lakegate_http_requests_total", (("method", "GET"), ("operation", "LoadTable"), ("status", "200"))] == 6
    )
    assert found["lakegate_outbox_pending", ()] == 9, (
        "a gauge must show the last reading and not the sum of all workers"
    )


def test_workers_without_shared_metrics_do_not_start(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="PROMETHEUS_MULTIPROC_DIR"):
        Metrics(multiprocess_dir=tmp_path)
