# SPDX-License-Identifier: Apache-2.0
"""Write the number of calls of each endpoint, and the numbers of tables and views, to the database."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from gateway.access.dependency_errors import CommitUnknown
from gateway.db import statistics
from gateway.db.engine import Database
from gateway.db.statistics import Counted
from gateway.telemetry.calls import Call, Calls

_log = structlog.get_logger("tasks.statistics")


class StatisticsKeeper:
    """Writes the statistics of one process every `every` seconds, and once at its end. A killed process loses its
    counts since the last write.
    """

    def __init__(self, *, database: Database, calls: Calls, default_project: str | None, every: float) -> None:
        self._database = database
        self._calls = calls
        self._default_project = default_project
        self._every = every

    async def run(self) -> None:
        """Write until the process ends."""
        while True:
            await asyncio.sleep(self._every)
            await self.flush()

    async def flush(self) -> None:
        """Write the current counts. Raises nothing: counts that cannot be written are kept for the next time."""
        counts = self._calls.take()
        try:
            async with self._database.transaction() as connection:
                await statistics.add_calls(connection, self._by_project(counts))
        except CommitUnknown:
            # The counts may be in the database: a double count would be worse than a missing one.
            _log.warning("statistics.unknown", calls=sum(counts.values()))
        except Exception as failed:
            # A failure of the statistics must not end the process.
            self._calls.put_back(counts)
            _log.warning("statistics.postponed", reason=str(failed) or type(failed).__name__)
        try:
            async with self._database.transaction() as connection:
                await statistics.forget_calls(connection)
                await statistics.sum_up(connection)
        except Exception as failed:
            _log.warning("statistics.not_summed_up", reason=str(failed) or type(failed).__name__)

    def _by_project(self, counts: Mapping[Call, int]) -> list[Counted]:
        """Assign counts without a project to the default project; without one, drop them."""
        return [
            Counted(project, call.warehouse_id, call.route, call.status, count)
            for call, count in counts.items()
            if (project := call.project_id or self._default_project) is not None
        ]
