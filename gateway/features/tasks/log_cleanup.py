# SPDX-License-Identifier: Apache-2.0
"""Delete ended tasks and their attempt logs after a retention time: a recurring task of each project."""

from __future__ import annotations

from typing import Final

from gateway.access.door.door import Door
from gateway.access.nouns.project import ProjectRef
from gateway.access.operations.tasks import CleanTaskLog
from gateway.db.engine.database import Database
from gateway.db.tasks import task_queues, task_runs
from gateway.db.tasks.task_runs import Task
from gateway.db.tasks.tasks import Queue
from gateway.features.system_admission import admitted
from gateway.features.tasks.worker import report

_BATCH: Final = 1000


class LogCleanup:
    """Handler of `task_log_cleanup`. The next run is scheduled in the transaction that finishes this one."""

    def __init__(self, *, database: Database, door: Door) -> None:
        self._database = database
        self._door = door

    async def __call__(self, task: Task) -> None:
        """Delete rows in batches, so that no transaction is long."""
        operation = CleanTaskLog(ProjectRef(task.project_id))
        async with admitted(self._door, Queue.TASK_LOG_CLEANUP.value, str(task.id), operation) as permit:
            async with self._database.read() as connection:
                queue_settings = await task_queues.settings(
                    connection, Queue.TASK_LOG_CLEANUP, project_id=task.project_id
                )
            removed = 0
            while True:
                async with self._database.transaction() as connection:
                    batch = await task_queues.remove_ended(
                        connection, task.project_id, older_than=queue_settings.retention, limit=_BATCH
                    )
                removed += batch
                if batch < _BATCH:
                    break
                await report(self._database, task, progress=0.5, details={"removed": removed})
            permit.pending_audit.add_details(project_id=task.project_id, removed=str(removed))
            async with self._database.change(permit) as connection:
                await task_runs.report(connection, task, progress=1.0, details={"removed": removed})
                await task_runs.finish(connection, task)
                await task_queues.schedule_cleanups(connection, project_id=task.project_id)
