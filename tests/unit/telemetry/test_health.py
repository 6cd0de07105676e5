# SPDX-License-Identifier: Apache-2.0
"""Health reports for load balancers and operators."""

import asyncio

import msgspec
import pytest

from gateway.telemetry.health import HealthMonitor


class Clock:
    def __init__(self) -> None:
        self.at = 1_750_000_000.0

    def __call__(self) -> float:
        return self.at


class Dependency:
    """A system that can be up, down or hanging."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.hangs = False
        self.calls = 0

    async def __call__(self) -> None:
        self.calls += 1
        if self.hangs:
            await asyncio.sleep(3600)
        if self.failure is not None:
            raise self.failure


async def test_the_health_body_has_the_format_of_existing_probes() -> None:
    monitor = HealthMonitor(clock=Clock())
    for service, name in (("catalog", "read_pool"), ("catalog", "write_pool"), ("auth", "openfga"), ("policy", "opa")):
        monitor.register(service, name, Dependency())
    seen = {"status": "ok", "lastCheck": 1_750_000_000_000}
    assert msgspec.json.decode(msgspec.json.encode(await monitor.check_now())) == {
        "health": "ok",
        "services": {
            "catalog": [{"name": "read_pool"} | seen, {"name": "write_pool"} | seen],
            "auth": [{"name": "openfga"} | seen],
            "policy": [{"name": "opa"} | seen],
        },
        "maintenance_mode": "off",
    }


def test_health_is_unknown_before_the_first_check() -> None:
    monitor = HealthMonitor()
    monitor.register("auth", "openfga", Dependency())
    report = monitor.report()
    assert (report.health, report.healthy) == ("unknown", False)
    assert report.services["auth"][0].last_check is None


@pytest.mark.parametrize(
    "failure", [OSError("refused"), ValueError("odd"), TimeoutError(), RuntimeError("x" * 100_000)]
)
async def test_any_exception_of_a_check_is_an_error_that_recovers(failure: Exception) -> None:
    good, bad = Dependency(), Dependency()
    monitor = HealthMonitor()
    monitor.register("catalog", "read_pool", good)
    monitor.register("auth", "openfga", bad)
    bad.failure = failure
    report = await monitor.check_now()
    assert (report.health, report.healthy) == ("error", False)
    assert [report.services[service][0].status for service in ("catalog", "auth")] == ["ok", "error"]
    bad.failure = None
    assert (await monitor.check_now()).healthy


async def test_a_hanging_dependency_is_an_error_and_delays_no_other_check() -> None:
    hanging, good = Dependency(), Dependency()
    hanging.hangs = True
    monitor = HealthMonitor(interval_seconds=1, timeout_seconds=0.05)
    monitor.register("policy", "opa", hanging)
    monitor.register("auth", "openfga", good)
    async with asyncio.timeout(60):
        report = await monitor.check_now()
    assert (report.services["policy"][0].status, report.services["auth"][0].status) == ("error", "ok")


async def test_a_stale_health_report_is_not_returned() -> None:
    clock = Clock()
    monitor = HealthMonitor(interval_seconds=10, clock=clock)
    monitor.register("auth", "openfga", Dependency())
    await monitor.check_now()
    clock.at += 30
    assert monitor.report().health == "ok"
    clock.at += 1
    assert monitor.report().health == "unknown"


async def test_polling_starts_at_once_repeats_and_stops() -> None:
    dependency = Dependency()
    monitor = HealthMonitor(interval_seconds=0.02, timeout_seconds=0.02)
    monitor.register("auth", "openfga", dependency)
    async with monitor, asyncio.timeout(60):
        while dependency.calls < 3:
            await asyncio.sleep(0.01)
    polled = dependency.calls
    await asyncio.sleep(0.06)
    assert dependency.calls == polled


async def test_a_health_request_calls_no_dependency() -> None:
    dependency = Dependency()
    monitor = HealthMonitor()
    monitor.register("auth", "openfga", dependency)
    for _ in range(100):
        monitor.report()
    assert dependency.calls == 0


def test_a_duplicate_check_name_is_refused() -> None:
    monitor = HealthMonitor()
    monitor.register("auth", "openfga", Dependency())
    with pytest.raises(ValueError, match="auth/openfga"):
        monitor.register("auth", "openfga", Dependency())


async def test_a_short_interval_shortens_the_check_timeout() -> None:
    monitor, hanging = HealthMonitor(interval_seconds=0.05), Dependency()
    hanging.hangs = True
    monitor.register("auth", "openfga", hanging)
    report = await asyncio.wait_for(monitor.check_now(), 4)  # the timeout of a long interval is 5 seconds
    assert not report.healthy


def test_inconsistent_health_timings_are_refused() -> None:
    with pytest.raises(ValueError, match="timeout_seconds"):
        HealthMonitor(interval_seconds=1, timeout_seconds=2)


async def test_one_available_identity_provider_of_several_is_healthy() -> None:
    """Each provider is reported; the gateway is unhealthy only if sign-in is impossible with every one."""
    monitor = HealthMonitor(clock=Clock())
    one, other, database = Dependency(), Dependency(), Dependency()
    monitor.register("identity", "oidc", one, alternative=True)
    monitor.register("identity", "corp", other, alternative=True)
    monitor.register("catalog", "write_pool", database)
    one.failure = OSError("down")
    report = await monitor.check_now()
    assert report.healthy and [each.status for each in report.services["identity"]] == ["error", "ok"]
    other.failure = OSError("down")
    assert not (await monitor.check_now()).healthy
    other.failure, database.failure = None, OSError("down")
    assert not (await monitor.check_now()).healthy, "an unavailable component without an alternative must be unhealthy"


async def test_cancelled_future_inside_of_a_check_does_not_end_the_other_checks() -> None:
    async def cancels() -> None:
        lost = asyncio.get_running_loop().create_future()
        lost.cancel()
        await lost

    monitor, other = HealthMonitor(interval_seconds=0.01), Dependency()
    monitor.register("events", "sink", cancels, required=False)
    monitor.register("catalog", "write_pool", other)
    async with monitor, asyncio.timeout(10):
        while other.calls < 3:
            await asyncio.sleep(0.01)
    assert [each.status for each in monitor.report().services["events"]] == ["error"]


async def test_dependencies_with_a_shared_name_are_one_entry_with_the_worst_status() -> None:
    """`/health` needs no token, so it does not name the sinks of events."""
    working, broken = Dependency(), Dependency()
    broken.failure = OSError("refused")
    monitor = HealthMonitor()
    monitor.register("catalog", "write_pool", working)
    monitor.register("events", "payroll-kafka", working, required=False, shown="sinks")
    monitor.register("events", "hr-webhook", broken, required=False, shown="sinks")
    report = await monitor.check_now()
    assert report.healthy
    assert [(each.name, each.status) for each in report.services["events"]] == [("sinks", "error")]
