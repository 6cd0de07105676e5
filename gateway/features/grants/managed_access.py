# SPDX-License-Identifier: Apache-2.0
"""Use cases of managed access: read the flag, set it, and respond when OpenFGA has the change.

The flag on a warehouse or namespace removes the right to grant from the owners of objects below it.
"""

from __future__ import annotations

from uuid import UUID

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable
from gateway.access.door.permit import Permit
from gateway.access.management_errors import RevocationPending
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.refs import NamespaceIdRef, ObjectKey, ObjectType, Ref
from gateway.access.nouns.resolved import Resolution, ResolvedNamespace, ResolvedWarehouse
from gateway.access.operations.actions import NamespacePermissions, WarehousePermissions
from gateway.access.operations.namespaces import GetPermissions, SetManagedAccess
from gateway.db.tuples import managed_access, outbox
from gateway.features.kit import UseCases


class ManagedAccess(UseCases):
    """The managed-access flag of a container. While it is set, owners of objects inside cannot grant rights on them."""

    async def get(self, permit: Permit[GetPermissions]) -> WarehousePermissions | NamespacePermissions:
        """Return the flag of a warehouse, or both the own and the inherited flag of a namespace."""
        row = _row(permit.resolution, permit.operation.on)
        warehouse = row if isinstance(row, ResolvedWarehouse) else row.warehouse
        within = (*row.ancestors, row.id) if isinstance(row, ResolvedNamespace) else ()
        async with self._database.read() as connection:
            of_warehouse, of_namespaces = await managed_access.flags(connection, warehouse.id, within)
        if isinstance(row, ResolvedWarehouse):
            return WarehousePermissions(managed_access=of_warehouse)
        return NamespacePermissions(
            managed_access=of_namespaces.get(row.id, False),
            managed_access_inherited=of_warehouse or any(of_namespaces.get(id, False) for id in row.ancestors),
        )

    async def set(self, permit: Permit[SetManagedAccess]) -> None:
        """Set or clear the flag. Idempotent: a repeated request delivers the tuples again.

        Setting it revokes rights, so the response waits until it is in force everywhere. Raises RevocationPending if
        the change is recorded but OpenFGA has not confirmed it yet.
        """
        operation = permit.operation
        row = _row(permit.resolution, operation.on)
        on = _key(row.id, operation.on)
        within = row.id if isinstance(row, ResolvedWarehouse) else row.warehouse.id
        async with self._database.change(permit) as connection:
            if not await managed_access.set_flag(connection, on, operation.managed):
                raise not_found(operation.on)
            pending = await outbox.enqueue(
                connection, managed_access.keys(on), takes_away=operation.managed, warehouse_id=within
            )
        if not operation.managed:
            await self._delivery.deliver_or_defer(pending)
            return
        try:
            await self._delivery.deliver(pending)
        except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown) as outage:
            raise RevocationPending(
                "Managed access is recorded, but it is not yet in effect everywhere. The gateway retries it; no "
                "further request is needed."
            ) from outage


def _row(resolution: Resolution, on: Ref) -> ResolvedWarehouse | ResolvedNamespace:
    row = resolution.get(on)
    if not isinstance(row, (ResolvedWarehouse, ResolvedNamespace)):
        raise LookupError(f"the operation was not admitted on a warehouse or namespace {on!r}")
    return row


def _key(id: UUID, on: Ref) -> ObjectKey:
    return ObjectKey(ObjectType.NAMESPACE if isinstance(on, NamespaceIdRef) else ObjectType.WAREHOUSE, str(id))
