# SPDX-License-Identifier: Apache-2.0
"""Progress reports of long tasks, which also detect a request to stop."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.db import task_runs
from gateway.db.engine import Database
from gateway.db.task_runs import Task, TaskStopped


async def report(
    database: Database, task: Task, *, progress: float, details: Mapping[str, object] | None = None
) -> None:
    """Record `progress` (0 to 1) and `details` of a task, at a point where it can be interrupted.

    Raises TaskStopped if a stop was requested, TaskLost if another worker has taken the task, and the errors of
    database outages.
    """
    async with database.transaction() as connection:
        stop = await task_runs.report(connection, task, progress=progress, details=details)
    if stop:
        raise TaskStopped("stopped by request")
