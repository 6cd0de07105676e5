# SPDX-License-Identifier: Apache-2.0
"""List soft-deleted tables and views, undrop them, and delete them permanently after the retention time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from gateway.access.door.door import Door
from gateway.access.door.permit import Permit
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.refs import ObjectKey, ObjectType, WarehouseRef
from gateway.access.operations.deletion import DeletedTabular, DeletedTabulars, ListDeletedTabulars, UndropTabulars
from gateway.access.operations.tasks import ExpireDeleted
from gateway.db.engine.database import Connection, Database
from gateway.db.tables import deleted, namespaces, tables
from gateway.db.tables.deleted import KeptRow
from gateway.db.tables.documents import Document
from gateway.db.tasks import task_runs
from gateway.db.tasks.task_runs import Task
from gateway.db.tasks.tasks import FileDisposal, Queue
from gateway.db.tuples.delivery import TupleDelivery
from gateway.db.tuples.outbox import Pending
from gateway.db.tuples.ownership import record_deleted
from gateway.features.approvals.change_approval import ChangeApproval
from gateway.features.contents.lists import Lists
from gateway.features.kit import Kit, UseCases, admitted
from gateway.iceberg.errors import AlreadyExistsException, CommitFailedException, NoSuchNamespaceException


class DeletedTables(UseCases):
    """Soft-deleted tables and views of a warehouse. They keep their grants."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._documents = kit.documents
        self._approval = ChangeApproval(kit)
        self._lists = Lists(kit)

    async def list(self, permit: Permit[ListDeletedTabulars]) -> DeletedTabulars:
        """Return the soft-deleted tables and views that the caller can see, ordered by name."""
        warehouse_id = permit.operation.warehouse.warehouse_id
        rows, token = await self._lists.dropped(permit)
        return DeletedTabulars(
            tabulars=[
                DeletedTabular(
                    id=row.id,
                    name=row.name,
                    namespace=list(row.levels),
                    typ=row.kind.replace("_", "-"),
                    warehouse_id=warehouse_id,
                    created_at=row.created_at,
                    deleted_at=row.deleted_at,
                    expiration_date=row.expires_at,
                )
                for row in rows
            ],
            next_page_token=token,
        )

    async def undrop(self, permit: Permit[UndropTabulars]) -> None:
        """Undrop all targets with their names and grants. Targets that are not dropped stay unchanged, so a request can
        be repeated.

        Raises:
        - AlreadyExistsException (409): another object has taken the name of a target.
        - The 404 of a target that was deleted permanently meanwhile.
        - NoSuchNamespaceException: the namespace of a target is being dropped.
        - CommitFailedException (409): a target was dropped or changed after the verifiers were queried.
        - The errors of `ChangeApproval.require`.
        """
        found = {ref: permit.tabular(ref) for ref in permit.operation.targets}
        ids = [row.id for row in found.values()]
        approval, judged = await self._approval.of_restoration(permit, list(found.values()), self._documents)
        try:
            async with self._database.change(permit) as connection:
                await approval.use(connection)
                await namespaces.lock_shared(
                    connection, *{row.namespace.id: row.namespace for row in found.values()}.values()
                )
                held = {row.id: row for row in await deleted.lock_rows(connection, ids)}
                for ref, row in found.items():
                    if row.id not in held:
                        raise not_found(ref)
                rows = [row for row in held.values() if row.deleted_at is not None]
                _require_judged(rows, judged)
                dropped = [row.id for row in rows]
                await _refuse_taken_names(connection, dropped)
                await deleted.restore(connection, dropped)
                permit.pending_audit.add_details(brought_back=" ".join(str(id) for id in dropped))
        except namespaces.NamespaceGone as gone:
            raise NoSuchNamespaceException(
                "The namespace of a table or view to restore does not exist. Create it first."
            ) from gone
        except tables.Clash as clash:
            raise AlreadyExistsException(
                "Two of the targets have the same name, or a concurrent request took a name. Restore them one at a "
                "time, and rename the object that has the name."
            ) from clash


def _require_judged(dropped: Sequence[KeptRow], judged: Mapping[UUID, Document] | None) -> None:
    """Raise CommitFailedException if a dropped object is not in the state that the verifiers evaluated.

    `judged` is None if no verifier evaluates restorations.
    """
    if judged is None:
        return
    for row in dropped:
        document = judged.get(row.id)
        if document is None or document.metadata_location != (row.metadata_location or ""):
            raise CommitFailedException(
                f"The object {row.id} was dropped or changed while its restoration was verified. Try again."
            )


async def _refuse_taken_names(connection: Connection, ids: list[UUID]) -> None:
    for row in await deleted.taken_names(connection, ids):
        raise AlreadyExistsException(
            f"Cannot restore {row.kind} {row.id}: its name {row.name} already exists, as the name of another "
            f"{row.taken_by}. Rename or drop that object first."
        )


class SoftDeletion:
    """Handler of the task `soft_deletion`. An object that was undropped or deleted meanwhile is skipped."""

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
        self, connection: Connection, permit: Permit[ExpireDeleted], task: Task, row: KeptRow
    ) -> list[Pending]:
        above = await tables.containers(connection, row.id)
        kind, then = ObjectType(row.kind), task.payload(FileDisposal)
        await deleted.dispose_files(
            connection,
            row.id,
            then,
            kind=kind,
            warehouse_id=task.warehouse_id,
            location=row.location,
            location_key=row.location_key,
            parent=task.id,
        )
        await deleted.remove(connection, [row.id])
        permit.pending_audit.add_details(
            table_id=str(row.id), kind=row.kind, location=row.location, files=then.files.value
        )
        return await record_deleted(
            connection,
            ObjectKey(kind, str(row.id)),
            above[-1],
            above=above,
            warehouse_id=task.warehouse_id,
            by=permit.actor.id,
        )
