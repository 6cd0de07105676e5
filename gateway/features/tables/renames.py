# SPDX-License-Identifier: Apache-2.0
"""Rename tables, views and generic tables. Files are not moved.

A rename into another namespace changes the object's parent in the relationship model. Then readers of the new namespace
can see it, and readers of the old one cannot. The response is sent after OpenFGA has confirmed the change.
"""

from __future__ import annotations

from gateway.access.dependency_errors import DatabaseUnavailable, DecisionEngineUnavailable
from gateway.access.door.permit import Permit
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import ResolvedGenericTable, ResolvedNamespace, ResolvedTable, ResolvedView
from gateway.access.operations.generic_tables import RenameGenericTable
from gateway.access.operations.tables import RenameTable, RenameView, destination_namespace
from gateway.db.engine.database import Connection
from gateway.db.tables import namespaces, tables
from gateway.db.tuples.ownership import Steps, record_moved
from gateway.features.approvals.change_approval import ChangeApproval
from gateway.features.contents.containers import above_table
from gateway.features.kit import Kit, UseCases
from gateway.features.tables.tabular_creation import kind_text
from gateway.iceberg.errors import (
    AlreadyExistsException,
    CatalogError,
    CommitStateUnknownException,
    NoSuchGenericTableException,
    NoSuchNamespaceException,
    NoSuchTableException,
    NoSuchViewException,
)
from gateway.iceberg.identifiers import TableIdentifier, fold, validate_new_name

Moved = ResolvedTable | ResolvedView | ResolvedGenericTable


class Renames(UseCases):
    """Use cases: rename tables, views and generic tables."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._documents = kit.documents
        self._approval = ChangeApproval(kit)

    async def table(self, permit: Permit[RenameTable]) -> None:
        """Rename a table, or move it to another namespace.

        Raises:
        - TableActionForbidden: the right to move expires.
        - AlreadyExistsException: the name is taken.
        - NoSuchTableException, NoSuchNamespaceException: the table or a namespace was dropped meanwhile.
        - CommitStateUnknownException (500): the rename is committed and its tuples are not delivered yet.
        """
        operation = permit.operation
        at = destination_namespace(operation.source, operation.destination)
        moved = permit.table(operation.source)
        to = moved.namespace if at is None else permit.namespace(at)
        await self._rename(permit, moved, operation.source.identifier, to, operation.destination, noun="table")

    async def view(self, permit: Permit[RenameView]) -> None:
        """Rename a view. Raises the errors of `table`, with NoSuchViewException."""
        operation = permit.operation
        at = destination_namespace(operation.source, operation.destination)
        moved = permit.view(operation.source)
        to = moved.namespace if at is None else permit.namespace(at)
        await self._rename(permit, moved, operation.source.identifier, to, operation.destination, noun="view")

    async def generic_table(self, permit: Permit[RenameGenericTable]) -> None:
        """Rename a generic table. Raises the errors of `table`, with NoSuchGenericTableException."""
        operation = permit.operation
        at = destination_namespace(operation.source, operation.destination)
        moved = permit.generic_table(operation.source)
        to = moved.namespace if at is None else permit.namespace(at)
        await self._rename(permit, moved, operation.source.identifier, to, operation.destination, noun="generic_table")

    async def _rename(
        self,
        permit: Permit[RenameTable] | Permit[RenameView] | Permit[RenameGenericTable],
        moved: Moved,
        source: TableIdentifier,
        to: ResolvedNamespace,
        destination: TableIdentifier,
        *,
        noun: str,
    ) -> None:
        validate_new_name(destination.name, noun=kind_text(noun))
        if to.id != moved.namespace.id:
            # The move permanently replaces the rights that the object inherits, so the caller's right to move must not
            # expire.
            await self._door.require_endless(permit, Can.MOVE, permit.operation.source)
        permit.pending_audit.add_details(
            **{f"{noun}_id": str(moved.id), "from": source.dotted, "to": destination.dotted}
        )
        approval = await self._approval.of_rename(permit, moved, to, destination.name, self._documents)
        try:
            async with self._database.change(permit) as connection:
                await approval.use(connection)
                steps = await self._record(connection, moved, source, to, destination)
        except namespaces.NamespaceGone as gone:
            if gone.id != to.id:
                raise _not_found(moved, source) from gone
            raise NoSuchNamespaceException.of(destination.namespace) from gone
        except tables.Clash as clash:
            async with self._database.read() as connection:
                kind = await tables.name_taken(connection, to.id, destination.name) or noun
            raise AlreadyExistsException.rename(source, destination, taken_by=kind_text(kind).capitalize()) from clash
        await self._deliver(steps)

    async def _record(
        self,
        connection: Connection,
        moved: Moved,
        source: TableIdentifier,
        to: ResolvedNamespace,
        destination: TableIdentifier,
    ) -> Steps:
        await namespaces.lock_shared(connection, moved.namespace, to)
        now = await tables.lock(connection, moved.id)
        if now is None or (now.namespace_id, now.name_key) != (moved.namespace.id, fold(moved.identifier.name)):
            raise _not_found(moved, source)
        await tables.move(connection, moved.id, namespace_id=to.id, name=destination.name)
        if to.id == moved.namespace.id:
            return ()
        return await record_moved(
            connection,
            moved.key,
            moved.namespace.key,
            to.key,
            above_before=above_table(moved.namespace),
            above_after=above_table(to),
            warehouse_id=to.warehouse.id,
        )

    async def _deliver(self, steps: Steps) -> None:
        """Deliver the tuples to OpenFGA step by step, so that a principal that keeps access has it at every moment."""
        try:
            for step in steps:
                await self._delivery.deliver(step)
        except (DecisionEngineUnavailable, DatabaseUnavailable) as outage:
            # The rename is committed, so the error must not be one that clients read as "nothing happened".
            raise CommitStateUnknownException(
                "The rename is recorded, but the access rights are not updated everywhere yet. The gateway retries "
                "until they are; do not rename again."
            ) from outage


def _not_found(moved: Moved, source: TableIdentifier) -> CatalogError:
    """Return the error for an object that was dropped or renamed since the decision."""
    match moved:
        case ResolvedTable():
            return NoSuchTableException.of(source)
        case ResolvedView():
            return NoSuchViewException.of(source)
        case ResolvedGenericTable():
            return NoSuchGenericTableException.of(source)
