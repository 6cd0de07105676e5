# SPDX-License-Identifier: Apache-2.0
"""Move namespaces. Files stay where they are; the inherited rights on all objects below change.

Principals with rights on the old parent lose them, and those with rights on the new parent gain access. The response
waits until OpenFGA has confirmed the change, and no worker process uses older cached decisions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from gateway.access.door.permit import Permit
from gateway.access.management_errors import (
    NamespaceCannotMoveIntoSelf,
    StorageLayoutForbidsNamespaceMove,
    pending_during_outage,
)
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.refs import NamespaceRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import ResolvedNamespace, ResolvedWarehouse
from gateway.access.operations.namespaces import MovedNamespace, MoveNamespace
from gateway.db.engine.database import Connection, retry_serialization
from gateway.db.tables import namespace_move
from gateway.db.tables.namespace_move import Subtree
from gateway.db.tables.namespaces import NamespaceGone
from gateway.db.tables.tables import Clash
from gateway.db.tuples.ownership import Steps
from gateway.features.approvals.change_approval import ChangeApproval
from gateway.features.kit import Kit, UseCases
from gateway.iceberg.errors import (
    AlreadyExistsException,
    NamespaceDepthExceeded,
    NamespaceProtected,
)
from gateway.iceberg.identifiers import MAX_LEVELS, Namespace, validate_new_namespace
from gateway.scope.location import FullHierarchyLayout

UseApproval: TypeAlias = Callable[[Connection], Awaitable[None]]
"""Marks the approval of a change as used, in the transaction of the change."""

ApproveMove: TypeAlias = Callable[
    [Permit[MoveNamespace], ResolvedNamespace, ResolvedNamespace | None, Namespace], Awaitable[UseApproval]
]
"""Asks the verifiers about the move of a namespace. Raises the refusal."""


class NamespaceMoves(UseCases):
    """Move namespaces. `reserved` names are forbidden, as for new namespaces. `approve` is called before the move."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._approve = ChangeApproval(kit).of_move
        self._reserved = kit.reserved

    async def move(self, permit: Permit[MoveNamespace]) -> MovedNamespace:
        """Move a namespace. Idempotent: a repeated move delivers the tuples again.

        Raises StorageLayoutForbidsNamespaceMove, NamespaceCannotMoveIntoSelf, NamespaceDepthExceeded and the other 400
        errors of names. Raises NamespaceActionForbidden if the caller's right to a new parent expires. Raises
        AlreadyExistsException or NamespaceProtected. Raises NoSuchNamespaceException if the namespace or the parent was
        dropped meanwhile. Raises RevocationPending if the move is recorded but OpenFGA has not confirmed it yet.
        """
        operation = permit.operation
        parent = permit.namespace(operation.parent) if isinstance(operation.parent, NamespaceRef) else None
        warehouse = permit.namespace(operation.namespace).warehouse
        validate_new_namespace(operation.destination, reserved=self._reserved)
        _refuse_layout(warehouse)
        above = permit.namespace(operation.namespace).ancestors[-1:]
        if above != (() if parent is None else (parent.id,)):
            # The move permanently replaces the rights that the namespace inherits, so the caller's right to move must
            # not expire.
            await self._door.require_endless(permit, Can.MOVE, operation.namespace)
        # The parent's name in its stored spelling, as namespace lists return it.
        name = operation.destination.name
        to = Namespace((name,)) if parent is None else parent.namespace.child(name)
        use_approval = await self._approve(permit, permit.namespace(operation.namespace), parent, to)
        try:
            steps = await retry_serialization(lambda: self._record(permit, warehouse, parent, to, use_approval))
        except NamespaceGone as gone:
            raise not_found(operation.parent) from gone
        except Clash as clash:
            raise AlreadyExistsException(f"Namespace already exists: {operation.destination.dotted}") from clash
        with pending_during_outage(
            "The move is recorded, but the access rights are not yet updated everywhere. The gateway retries it; no "
            "further request is needed."
        ):
            # Deliver the steps in order, so that principals which keep access do not lose it in between.
            for step in steps:
                await self._delivery.deliver(step)
        return MovedNamespace(
            namespace=to.levels,
            namespace_id=operation.namespace.namespace_id,
            parent_namespace_id=None if parent is None else parent.id,
        )

    async def repeat(self, permit: Permit[MoveNamespace]) -> MovedNamespace:
        """Return the current location of the namespace in the catalog, for a repeated idempotency key.

        The door has checked that the caller may still make this move.
        """
        operation = permit.operation
        row = permit.namespace(operation.namespace)
        permit.pending_audit.add_details(repeated="true")
        await permit.pending_audit.commit()
        return MovedNamespace(
            namespace=row.namespace.levels,
            namespace_id=row.id,
            parent_namespace_id=row.ancestors[-1] if row.ancestors else None,
        )

    async def _record(
        self,
        permit: Permit[MoveNamespace],
        warehouse: ResolvedWarehouse,
        parent: ResolvedNamespace | None,
        to: Namespace,
        use_approval: UseApproval,
    ) -> Steps:
        async with self._database.change(permit) as connection:
            await use_approval(connection)
            subtree = await namespace_move.lock(connection, permit.namespace(permit.operation.namespace), parent=parent)
            if subtree is None:
                raise not_found(permit.operation.namespace)
            self._refuse(permit.operation, subtree)
            permit.pending_audit.add_details(
                **{"from": ".".join(subtree.levels), "to": to.dotted, "moved": str(len(subtree.ids))}
            )
            if self._database.announces and to.levels != subtree.levels:
                inside = await namespace_move.contents(connection, subtree, to=to)
                permit.pending_audit.further_changes = inside.all
            return await namespace_move.move(connection, subtree, project_id=warehouse.project_id, to=to)

    def _refuse(self, operation: MoveNamespace, subtree: Subtree) -> None:
        moved = ".".join(subtree.levels)
        if subtree.into_itself:
            raise NamespaceCannotMoveIntoSelf(f"Namespace {moved} cannot be moved into itself.")
        if subtree.protected and not operation.force:
            raise NamespaceProtected(
                f"Namespace {moved} is protected. Remove its protection first, or send force=true to move it."
            )
        deepest = subtree.depth - len(subtree.levels) + len(operation.destination.levels)
        if deepest > MAX_LEVELS:
            raise NamespaceDepthExceeded(
                f"Namespace exceeds maximum depth of {MAX_LEVELS}: after the move, a namespace would have {deepest} "
                "levels."
            )


def _refuse_layout(warehouse: ResolvedWarehouse) -> None:
    """Raise StorageLayoutForbidsNamespaceMove if paths of new tables contain the names of their namespaces."""
    if isinstance(warehouse.storage_profile.storage_layout, FullHierarchyLayout):
        raise StorageLayoutForbidsNamespaceMove(
            "Namespaces of this warehouse cannot be moved or renamed: its storage layout (full-hierarchy) puts "
            "namespace names into the locations of tables."
        )
