# SPDX-License-Identifier: Apache-2.0
"""Metrics and health of the canary."""

from __future__ import annotations

from gateway.telemetry.health import HealthMonitor
from gateway.telemetry.metrics import Metrics


def test_warehouses_are_counted_by_verdict_and_missing_verdicts_are_zero() -> None:
    metrics = Metrics()
    metrics.scope_counted({"escaped": 2, "proven": 1}, 1_700_000_000.0)
    metrics.scope_counted({"proven": 3}, 1_700_000_060.0)
    text = metrics.render().decode()
    assert 'lakegate_scope_warehouses{verdict="escaped"} 0.0' in text
    assert 'lakegate_scope_warehouses{verdict="proven"} 3.0' in text
    assert "lakegate_scope_oldest_verdict_timestamp_seconds 1.70000006e+09" in text


def test_attempts_are_counted_by_result() -> None:
    metrics = Metrics()
    metrics.scope_tried(refused=180, reached=2, unclear=1)
    text = metrics.render().decode()
    for result, number in (("refused", 180), ("reached", 2), ("unclear", 1)):
        assert f'lakegate_scope_attempts_total{{result="{result}"}} {number}.0' in text


async def test_an_informative_check_is_reported_and_leaves_the_gateway_healthy() -> None:
    """Another gateway would have the same escape, so a load balancer must not take this one out of service."""

    async def fails() -> None:
        raise RuntimeError("a store lets credentials escape")

    async def works() -> None:
        return None

    monitor = HealthMonitor()
    monitor.register("catalog", "write_pool", works)
    monitor.register("storage", "credential_scope", fails, required=False)
    report = await monitor.check_now()
    assert report.healthy
    assert [each.status for each in report.services["storage"]] == ["error"]
