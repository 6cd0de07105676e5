# SPDX-License-Identifier: Apache-2.0
"""Use cases of soft-deleted tables and views: list them, and undrop them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from gateway.access.authz_errors import not_found
from gateway.access.operations.deleted import ListDeletedTabulars, UndropTabulars
from gateway.access.permit import Permit
from gateway.catalog.change_approval import ChangeApproval
from gateway.catalog.lists import Lists
from gateway.db import deleted, namespaces, tables
from gateway.db.documents import Document, Documents
from gateway.db.engine import Connection, Database
from gateway.db.rows import AnyRow
from gateway.iceberg.errors import AlreadyExistsException, CommitFailedException, NoSuchNamespaceException
from gateway.protocol.deleted import DeletedTabular, DeletedTabulars


class DeletedTables:
    """Soft-deleted tables and views of a warehouse. They keep their grants."""

    def __init__(self, *, database: Database, lists: Lists, documents: Documents, approval: ChangeApproval) -> None:
        self._documents = documents
        self._approval = approval
        self._database = database
        self._lists = lists

    async def list(self, permit: Permit[ListDeletedTabulars]) -> DeletedTabulars:
        """Return the soft-deleted tables and views that the caller can see, ordered by name."""
        warehouse_id = permit.operation.warehouse.warehouse_id
        rows, token = await self._lists.dropped(permit)
        return DeletedTabulars(
            tabulars=[
                DeletedTabular(
                    id=row.id,
                    name=row.name,
                    namespace=row.levels,
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
        """Undrop all targets with their names and grants. Targets that are not dropped remain unchanged, so that the
        request can be repeated.

        Raises:
        - AlreadyExistsException (409): another object has taken the name of a target.
        - The 404 of a target that was deleted permanently meanwhile.
        - NoSuchNamespaceException: the namespace of a target is being dropped.
        - CommitFailedException (409): a target was dropped or changed after the verifiers were asked.
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


def _require_judged(dropped: Sequence[AnyRow], judged: Mapping[UUID, Document] | None) -> None:
    """Raise CommitFailedException if the verifiers judged another state of a dropped object. None: they judge none."""
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
