# SPDX-License-Identifier: Apache-2.0
"""Check the health of the systems on which a gateway depends, periodically in the background.

`/health` returns stored results. So it never waits, and callers cannot put load on the dependencies by it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, Self

import msgspec

from gateway.telemetry.logs import get_logger

Status = Literal["ok", "error", "unknown"]
Check = Callable[[], Awaitable[None]]
"""Function that checks a dependency. It returns if the dependency works, and raises any exception if not."""

_STALE_AFTER_ROUNDS = 3

log = get_logger("gateway.telemetry.health")


class DependencyHealth(msgspec.Struct, frozen=True, rename={"last_check": "lastCheck"}):
    """Health of one dependency. `last_check` is in milliseconds since 1970; None before the first check has ended."""

    name: str
    status: Status
    last_check: int | None


class HealthReport(msgspec.Struct, frozen=True):
    """The body of `GET /health`. The response status is 200 if `healthy`, else 503.

    `health` is the worst status of all services that the gateway needs. For a service with alternative dependencies,
    one that is `ok` is enough.
    """

    health: Status
    services: dict[str, list[DependencyHealth]]
    maintenance_mode: str

    @property
    def healthy(self) -> bool:
        """Return True if `health` is `ok`."""
        return self.health == "ok"


class HealthMonitor:
    """Monitor that runs all registered checks concurrently every `interval_seconds`.

    Each check takes at most `timeout_seconds`. `async with monitor:` runs the checks while the block runs. A result
    that is older than three intervals counts as `unknown`, so that a stopped monitor does not report an old status.
    """

    def __init__(
        self,
        *,
        interval_seconds: float = 10.0,
        timeout_seconds: float | None = None,
        maintenance_mode: str = "off",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Create a monitor without checks.

        `timeout_seconds` is by default 5 or the interval, whichever is shorter. Raises `ValueError` unless
        0 < timeout <= interval.
        """
        timeout = min(5.0, interval_seconds) if timeout_seconds is None else timeout_seconds
        if not 0 < timeout <= interval_seconds:
            raise ValueError("0 < timeout_seconds <= interval_seconds is required")
        self._interval = interval_seconds
        self._timeout = timeout
        self._maintenance_mode = maintenance_mode
        self._clock = clock
        self._checks: dict[tuple[str, str], Check] = {}
        self._shown: dict[tuple[str, str], str] = {}
        self._alternatives: set[str] = set()
        self._not_required: set[tuple[str, str]] = set()
        self._results: dict[tuple[str, str], tuple[Status, float | None]] = {}
        self._task: asyncio.Task[None] | None = None

    def register(
        self,
        service: str,
        name: str,
        check: Check,
        *,
        alternative: bool = False,
        required: bool = True,
        shown: str | None = None,
    ) -> None:
        """Add a dependency, e.g. ("catalog", "write_pool"). Raises `ValueError` if it is already registered.

        `alternative`: one working dependency of the service is enough. For example, the gateway must stay in service if
        one of several identity providers is down. Unless `required` is set, the status is reported, but the gateway
        stays in service without the dependency, because most requests do not need it. The report is sent without
        authentication, so a name that only operators may read is replaced by `shown`. Dependencies with the same
        `shown` are one entry with the worst status.
        """
        if (service, name) in self._checks:
            raise ValueError(f"the health check {service}/{name} is registered already")
        if alternative:
            self._alternatives.add(service)
        if not required:
            self._not_required.add((service, name))
        self._shown[service, name] = name if shown is None else shown
        self._checks[service, name] = check
        self._results[service, name] = ("unknown", None)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._poll(), name="health")
        return self

    async def __aexit__(self, *_exc: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def check_now(self) -> HealthReport:
        """Run every check once and return the report."""
        await asyncio.gather(*(self._run(key, check) for key, check in self._checks.items()))
        return self.report()

    def report(self) -> HealthReport:
        """Return the report from stored results, without running checks."""
        services: dict[str, dict[str, DependencyHealth]] = {}
        needed: dict[str, set[Status]] = {}
        for key, (status, checked_at) in self._results.items():
            service, name = key[0], self._shown[key]
            current: Status = status if self._is_recent(checked_at) else "unknown"
            last_check = None if checked_at is None else round(checked_at * 1000)
            group = services.setdefault(service, {})
            group[name] = _joined(DependencyHealth(name, current, last_check), group.get(name))
            if key not in self._not_required:
                needed.setdefault(service, set()).add(current)
        shown = {service: list(group.values()) for service, group in services.items()}
        return HealthReport(self._overall(needed), shown, self._maintenance_mode)

    def _overall(self, needed: Mapping[str, set[Status]]) -> Status:
        found: set[Status] = set()
        for service, statuses in needed.items():
            fine = service in self._alternatives and "ok" in statuses
            found.add("ok" if fine else _worst(statuses))
        return _worst(found)

    def _is_recent(self, checked_at: float | None) -> bool:
        return checked_at is not None and self._clock() - checked_at <= _STALE_AFTER_ROUNDS * self._interval

    async def _poll(self) -> None:
        while True:
            await self.check_now()
            await asyncio.sleep(self._interval)

    async def _run(self, key: tuple[str, str], check: Check) -> None:
        before, status, reason = self._results[key][0], "ok", ""
        try:
            async with asyncio.timeout(self._timeout):
                await check()
        except (Exception, asyncio.CancelledError) as error:
            # Client libraries raise exceptions of any type. Each of them means that the dependency does not work. A
            # library that cancels one of its own futures raises CancelledError, which must not end all checks.
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
                raise
            status, reason = "error", f"{type(error).__name__}: {error}"
        self._results[key] = ("ok" if status == "ok" else "error", self._clock())
        if status != before:
            service, name = key
            if status == "error":
                log.warning("dependency.failed", service=service, name=name, reason=reason)
            else:
                log.info("dependency.recovered", service=service, name=name)


def _joined(health: DependencyHealth, other: DependencyHealth | None) -> DependencyHealth:
    """Return one entry for two dependencies with the same shown name: the worse status, and the earlier time."""
    if other is None:
        return health
    times = [each.last_check for each in (health, other) if each.last_check is not None]
    return DependencyHealth(health.name, _worst({health.status, other.status}), min(times, default=None))


def _worst(statuses: set[Status]) -> Status:
    if "error" in statuses:
        return "error"
    return "unknown" if "unknown" in statuses else "ok"
