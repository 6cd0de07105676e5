# SPDX-License-Identifier: Apache-2.0
"""How a task that takes long says how far it is, and hears that it shall stop."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.db import task_runs
from gateway.db.engine import Database
from gateway.db.task_runs import Task, TaskStopped


async def report(
    database: Database, task: Task, *, progress: float, details: Mapping[str, object] | None = None
) -> None:
    """Tell `progress` (0 to 1) and what is worth knowing, between two pieces of work that can be parted.

    Raises TaskStopped when somebody asked to stop, TaskLost when another worker has the task by now, and the database's
    outages.
    """
    async with database.transaction() as connection:
        stop = await task_runs.report(connection, task, progress=progress, details=details)
    if stop:
        raise TaskStopped("stopped as it was asked to")
