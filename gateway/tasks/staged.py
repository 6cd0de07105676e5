# SPDX-License-Identifier: Apache-2.0
"""Expire staged tables that no commit has completed."""

from __future__ import annotations

from gateway.access.door import Door
from gateway.access.operations.tasks import ExpireStagedTable
from gateway.access.refs import WarehouseRef
from gateway.db import tables, task_runs
from gateway.db.engine import Database
from gateway.db.task_runs import Task
from gateway.db.tasks import Queue
from gateway.tasks.system_admission import admitted


class ExpireStaged:
    """Handler of `expire_staged_table`: deletes a row that is still staged, and schedules the purge of its location.

    For a table that was created meanwhile, the task does nothing.
    """

    def __init__(self, *, database: Database, door: Door) -> None:
        self._database = database
        self._door = door

    async def __call__(self, task: Task) -> None:
        """Delete the row and schedule the purge in one transaction."""
        operation = ExpireStagedTable(WarehouseRef(task.warehouse_id), task.entity_id)
        async with (
            admitted(self._door, Queue.EXPIRE_STAGED_TABLE.value, str(task.id), operation) as permit,
            self._database.change(permit) as connection,
        ):
            gone = await tables.drop_staged(connection, task.entity_id)
            if gone:
                permit.pending_audit.add_details(table_id=str(task.entity_id), location=gone[0].location)
            await task_runs.finish(connection, task)
