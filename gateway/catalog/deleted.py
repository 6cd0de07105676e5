# SPDX-License-Identifier: Apache-2.0
"""Use cases of what was dropped and is kept: listing it, and bringing it back."""

from __future__ import annotations

from uuid import UUID

from gateway.access.authz_errors import not_found
from gateway.access.operations.deleted import ListDeletedTabulars, UndropTabulars
from gateway.access.permit import Permit
from gateway.catalog.lists import Lists
from gateway.db import deleted, namespaces, tables
from gateway.db.engine import Connection, Database
from gateway.iceberg.errors import AlreadyExistsException, NoSuchNamespaceException
from gateway.protocol.deleted import DeletedTabular, DeletedTabulars


class DeletedTables:
    """Tables and views of a warehouse that were dropped. Their grants were never taken away."""

    def __init__(self, *, database: Database, lists: Lists) -> None:
        self._database = database
        self._lists = lists

    async def list(self, permit: Permit[ListDeletedTabulars]) -> DeletedTabulars:
        """What the caller sees of it, by name."""
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
        """Bring all of them back, under their names, with their grants; what is there already stays as it is, so that
        asking again is fine.

        Raises AlreadyExistsException (409) when something else has the name of one by now, the 404 of what went for
        good meanwhile, and NoSuchNamespaceException when its namespace goes at this moment.
        """
        found = {ref: permit.tabular(ref) for ref in permit.operation.targets}
        ids = [row.id for row in found.values()]
        try:
            async with self._database.change(permit) as connection:
                await namespaces.hold(connection, *{row.namespace.id: row.namespace for row in found.values()}.values())
                held = {row.id: row for row in await deleted.hold(connection, ids)}
                for ref, row in found.items():
                    if row.id not in held:
                        raise not_found(ref)
                away = [row.id for row in held.values() if row.deleted_at is not None]
                await _refuse_taken_names(connection, away)
                await deleted.bring_back(connection, away)
                permit.trail.tell(brought_back=" ".join(str(id) for id in away))
        except namespaces.NamespaceGone as gone:
            raise NoSuchNamespaceException("The namespace of a table or view to bring back does not exist.") from gone
        except tables.Clash as clash:
            raise AlreadyExistsException("Two of the targets have one name, or somebody took one just now.") from clash


async def _refuse_taken_names(connection: Connection, ids: list[UUID]) -> None:
    for row in await deleted.names_taken(connection, ids):
        raise AlreadyExistsException(f"The name {row.name} of {row.kind} {row.id} is another {row.taken_by}'s by now")
