# SPDX-License-Identifier: Apache-2.0
"""How a task that takes long says how far it is, and hears that it shall stop."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.db import attempts
from gateway.db.attempts import Task, TaskStopped
from gateway.db.engine import Database


async def report(
    database: Database, task: Task, *, progress: float, details: Mapping[str, object] | None = None
) -> None:
    """Tell `progress` (0 to 1) and what is worth knowing, between two pieces of work that can be parted.

    Raises TaskStopped when somebody asked to stop, TaskLost when another worker has the task by now, and the database's
    outages.
    """
    async with database.transaction() as connection:
        stop = await attempts.report(connection, task, progress=progress, details=details)
    if stop:
        raise TaskStopped("stopped as it was asked to")
