# SPDX-License-Identifier: Apache-2.0
"""Writing down how often endpoints were called, and how many tables and views there are."""

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
    """One process's, `every` so many seconds and once more at the end. A process that is killed loses what it counted
    since.
    """

    def __init__(self, *, database: Database, calls: Calls, default_project: str | None, every: float) -> None:
        self._database = database
        self._calls = calls
        self._default_project = default_project
        self._every = every

    async def run(self) -> None:
        """Write for as long as the process lives."""
        while True:
            await asyncio.sleep(self._every)
            await self.flush()

    async def flush(self) -> None:
        """Write what was counted. Raises nothing: what cannot be written is counted on, and written later."""
        taken = self._calls.take()
        try:
            async with self._database.transaction() as connection:
                await statistics.add_calls(connection, self._counted(taken))
        except CommitUnknown:
            # Counting twice would be worse than not at all: who reads it compares hours.
            _log.warning("statistics.unknown", calls=sum(taken.values()))
        except Exception as failed:
            # Statistics end no process, whatever happens.
            self._calls.put_back(taken)
            _log.warning("statistics.postponed", reason=str(failed) or type(failed).__name__)
        try:
            async with self._database.transaction() as connection:
                await statistics.forget_calls(connection)
                await statistics.sum_up(connection)
        except Exception as failed:
            _log.warning("statistics.not_summed_up", reason=str(failed) or type(failed).__name__)

    def _counted(self, taken: Mapping[Call, int]) -> list[Counted]:
        """What is about no project counts for the default one, if there is one."""
        return [
            Counted(project, call.warehouse_id, call.route, call.status, count)
            for call, count in taken.items()
            if (project := call.project_id or self._default_project) is not None
        ]
