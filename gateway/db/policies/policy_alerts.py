# SPDX-License-Identifier: Apache-2.0
"""Record alerts about data policies that could not be applied as written, after the requests that found them.

These requests read under a stricter restriction instead. The owner of the policy sees the alert in the management API,
in the log and as a metric.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from cachetools import TTLCache

from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.db.engine.database import Database
from gateway.db.engine.policy_loss import RECORD, recorded
from gateway.obligations.binding import PolicyProblem
from gateway.obligations.guardrail_policies import GUARDRAIL

_log = structlog.get_logger("db.policy_alerts")

#: The seconds for which a process does not record the same problem again.
_QUIET_SECONDS: Final = 300.0
#: Maximum number of different problems in memory. Further problems are recorded after the quiet time.
_LIMIT: Final = 1000


class PolicyAlerts:
    """Records alerts about data policies. `counted` is called with the number of new alerts, for metrics."""

    def __init__(
        self,
        database: Database,
        counted: Callable[[int], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._counted = counted
        self._seen: TTLCache[PolicyProblem, bool] = TTLCache(_LIMIT, _QUIET_SECONDS, timer=clock)
        self._waiting: list[PolicyProblem] = []
        self._writer: asyncio.Task[None] | None = None

    def note(self, problems: Sequence[PolicyProblem]) -> None:
        """Log and count the alerts that are new in this process, and record them soon.

        It never waits or raises an error.
        """
        new = [each for each in problems if each not in self._seen and len(self._waiting) < _LIMIT]
        if not new:
            return
        for each in new:
            self._seen[each] = True
            _log.warning(
                "data_policy.not_applied", policy_id=each.policy_id, table_id=each.table_id, problem=each.problem
            )
        self._counted(len(new))
        # A guardrail has no row, and no owner that could get an alert.
        self._waiting += [each for each in new if each.policy_id != GUARDRAIL]
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self.flush(), name="data policy alerts")

    async def flush(self) -> None:
        """Write the waiting alerts. If the database fails, the next request that finds an alert records it again."""
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await self._database.execute_repeatable(RECORD, recorded(batch))
            except DatabaseUnavailable as outage:
                for each in batch:
                    self._seen.pop(each, None)
                _log.warning("data_policy.alerts_not_recorded", problems=len(batch), exc_info=outage)
                return
