# SPDX-License-Identifier: Apache-2.0
"""Warn before the trust in an engine ends because it was not probed again.

A probe tests whether the engine enforces restrictions, and counts only for some days. Every process reads the state for
its metrics. It logs once a day each trust that is about to end.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, Protocol
from uuid import UUID

import structlog

from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.access.engine_probes import ProbeRules, ProbeState, Standing, standing_of
from gateway.db.engine.database import Database
from gateway.db.grants import engine_probes

_log = structlog.get_logger("tasks.probe_expiry")

_AGAIN: Final = timedelta(days=1)
_PART: Final = 3
"""Trust expires soon in the last third of the time for which a probe counts."""


class TrustObserver(Protocol):
    """Receives the state of the engines' trust, for metrics."""

    def trust_counted(self, by_standing: Mapping[Standing, int], next_end: float) -> None:
        """Set the number of engines by standing, and the time at which the next trust ends (seconds since 1970; 0:
        none).
        """
        ...


class ProbeExpiry:
    """The warnings of one process. A passed probe is valid for `valid_days`. `every` is the mean interval in
    seconds.
    """

    def __init__(
        self, *, database: Database, observer: TrustObserver, valid_days: float, rules: ProbeRules, every: float = 60.0
    ) -> None:
        self._database = database
        self._observer = observer
        self._soon = timedelta(days=valid_days) / _PART
        self._rules = rules
        self._every = every
        self._logged: dict[tuple[str, UUID], datetime] = {}

    async def run(self) -> None:
        """Run until the process ends."""
        while True:
            try:
                await self.count()
            except DatabaseUnavailable as outage:
                _log.warning("engine_probe.count_postponed", reason=str(outage))
            except Exception:
                # The loop must survive unexpected errors; they are logged with their traceback.
                _log.exception("engine_probe.count_failed")
            await asyncio.sleep(self._every * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret

    async def count(self) -> None:
        """Report the number of engines to the metrics, and log those whose trust ends soon. Raises
        DatabaseUnavailable.
        """
        async with self._database.read() as connection:
            rows = await engine_probes.of_enforcers(connection)
        counted: Counter[Standing] = Counter()
        ends: list[datetime] = []
        logged: dict[tuple[str, UUID], datetime] = {}
        for row in rows:
            state = ProbeState(verdict=row.verdict, valid_until=row.valid_until, warn_until=row.warn_until)
            standing, end = standing_of(state, row.now, required=self._rules.require(row.engine), soon=self._soon)
            if standing is None:
                continue
            counted[standing] += 1
            if end is not None and end > row.now:
                ends.append(end)
            if standing is Standing.EXPIRING:
                at = row.engine, row.warehouse_id
                logged[at] = self._announce(at, end, row.now)
        self._logged = logged
        self._observer.trust_counted(counted, min(ends).timestamp() if ends else 0.0)

    def _announce(self, at: tuple[str, UUID], end: datetime | None, now: datetime) -> datetime:
        """Log that a trust ends soon, unless this was logged within a day. Return the time of the last log event."""
        last = self._logged.get(at)
        if last is not None and now - last < _AGAIN:
            return last
        engine, warehouse = at
        _log.warning("engine_probe.nearly_expired", engine=engine, warehouse=str(warehouse), trusted_until=str(end))
        return now
