# SPDX-License-Identifier: Apache-2.0
"""Permanently delete soft-deleted tables and views: the row, its grants, and its files as the drop requested."""

from __future__ import annotations

from gateway.access.door import Door
from gateway.access.operations.tasks import ExpireDeleted
from gateway.access.permit import Permit
from gateway.access.refs import ObjectKey, ObjectType, WarehouseRef
from gateway.db import deleted, tables, task_runs
from gateway.db.delivery import TupleDelivery
from gateway.db.engine import Connection, Database
from gateway.db.outbox import Pending
from gateway.db.ownership import record_deleted
from gateway.db.rows import AnyRow
from gateway.db.task_runs import Task
from gateway.db.tasks import Queue
from gateway.tasks.system_admission import admitted


class SoftDeletion:
    """Handler of `soft_deletion`. An object that was undropped or deleted meanwhile is skipped."""

    def __init__(self, *, database: Database, door: Door, delivery: TupleDelivery) -> None:
        self._database = database
        self._door = door
        self._delivery = delivery

    async def __call__(self, task: Task) -> None:
        """Delete the row, revoke its grants and schedule the purge in one transaction.

        An undrop cancels the task in its own transaction and locks the same row. The later of the two fails (here with
        `TaskLost`).
        """
        operation = ExpireDeleted(WarehouseRef(task.warehouse_id), task.entity_id)
        async with admitted(self._door, Queue.SOFT_DELETION.value, str(task.id), operation) as permit:
            pending: list[Pending] = []
            async with self._database.change(permit) as connection:
                row = await deleted.lock_for_deletion(connection, task.entity_id)
                if row is not None:
                    pending = await self._end(connection, permit, task, row)
                await task_runs.finish(connection, task)
            await self._delivery.deliver_or_defer(pending)

    async def _end(
        self, connection: Connection, permit: Permit[ExpireDeleted], task: Task, row: AnyRow
    ) -> list[Pending]:
        above = await tables.containers(connection, row.id)
        kind = ObjectType(row.kind)
        await deleted.dispose_files(
            connection,
            row.id,
            task.payload,
            kind=kind,
            warehouse_id=task.warehouse_id,
            location=row.location,
            location_key=row.location_key,
            parent=task.id,
        )
        await deleted.remove(connection, [row.id])
        permit.pending_audit.add_details(
            table_id=str(row.id), kind=row.kind, location=row.location, files=task.payload["files"]
        )
        return await record_deleted(
            connection,
            ObjectKey(kind, str(row.id)),
            above[-1],
            above=above,
            warehouse_id=task.warehouse_id,
            by=permit.actor.id,
        )
