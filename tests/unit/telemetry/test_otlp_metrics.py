# SPDX-License-Identifier: Apache-2.0
"""Conversion of Prometheus metrics to those of OpenTelemetry, and an export that fails or does not end."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client import CollectorRegistry

from gateway.telemetry.metrics import Metrics
from gateway.telemetry.otlp_metrics import MetricsExport
from tests.support.servers.otlp import attributes


class Kept:
    """Client that keeps all messages, decoded by OpenTelemetry's own types. The first one fails if `fails`."""

    def __init__(self, *, fails: bool = False) -> None:
        self.messages: list[Any] = []
        self.fails = fails

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        return None

    async def __call__(self, body: bytes) -> bytes:
        self.messages.append(ExportMetricsServiceRequest.FromString(body))
        if self.fails and len(self.messages) == 1:
            raise ValueError
        return b""

    def points(self, name: str) -> tuple[Any, dict[tuple[str, ...], Any]]:
        """Return (the last value of a metric, its points by their labels)."""
        metrics = self.messages[-1].resource_metrics[0].scope_metrics[0].metrics
        (metric,) = (each for each in metrics if each.name == name)
        data = getattr(metric, metric.WhichOneof("data"))
        return data, {tuple(attributes(point).values()): point for point in data.data_points}


def _export(collect: Any, exporter: Any, seconds: float = 3600) -> MetricsExport:
    return MetricsExport(collect, exporter, seconds=seconds, service_name="lakegate")


def test_counters_histograms_and_gauges_have_the_values_of_prometheus() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry=registry)
    for seconds in (0.0001, 0.002, 0.002, 100.0):
        metrics.request_answered(method="GET", operation="load_table", status=200, seconds=seconds)
    metrics.outbox_counted(7)
    kept = Kept()
    _export(registry.collect, kept).end()
    data, requests = kept.points("lakegate_http_requests")
    assert data.is_monotonic
    assert {labels: point.as_double for labels, point in requests.items()} == {("GET", "load_table", "200"): 4}
    _, durations = kept.points("lakegate_http_request_duration_seconds")
    duration = durations[("load_table",)]
    assert duration.count == 4
    assert list(duration.bucket_counts[:2]) == [1, 2]
    assert duration.bucket_counts[-1] == 1
    assert len(duration.bucket_counts) == len(duration.explicit_bounds) + 1
    assert duration.sum == 100.0041
    _, pending = kept.points("lakegate_outbox_pending")
    assert pending[()].as_double == 7


def test_a_failed_export_does_not_end_the_later_ones() -> None:
    kept = Kept(fails=True)
    export = _export(CollectorRegistry().collect, kept, 0.01)
    while len(kept.messages) < 3:
        threading.Event().wait(0.01)
    export.end()


def test_the_end_does_not_wait_for_a_collector_that_does_not_answer() -> None:
    """Without a limit, the main process would keep its port until the collector answers, and this test times out."""
    released = threading.Event()

    class Silent(Kept):
        async def __call__(self, body: bytes) -> bytes:
            released.wait()
            return b""

    def none() -> Iterable[Any]:
        return ()

    export = _export(none, Silent())
    export.end()
    released.set()
