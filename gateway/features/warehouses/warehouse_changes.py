# SPDX-License-Identifier: Apache-2.0
"""Use cases that change a warehouse, except its storage (`warehouse_storage.py`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import msgspec

from gateway.access.door.permit import Permit
from gateway.access.management_errors import (
    InstanceAdminRequired,
    WarehouseHasUnfinishedTasks,
    WarehouseNameAlreadyTaken,
    WarehouseNotEmpty,
    WarehouseProtected,
    pending_during_outage,
)
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.resolved import ResolvedWarehouse
from gateway.access.operations.deletion import ProtectionAnswer
from gateway.access.operations.warehouse_bodies import Warehouse
from gateway.access.operations.warehouses import (
    ActivateWarehouse,
    ChangeWarehouse,
    DeactivateWarehouse,
    DeleteWarehouse,
    RenameWarehouse,
    SetWarehouseDeleteProfile,
    SetWarehouseFormatVersionPolicy,
    SetWarehouseManagedBy,
    SetWarehousePolicyLoss,
    SetWarehouseProtection,
)
from gateway.db.credentials import secrets
from gateway.db.engine.database import Connection
from gateway.db.tuples.ownership import record_deleted
from gateway.db.warehouses import warehouses
from gateway.db.warehouses.warehouses import WarehouseRow
from gateway.features.approvals.change_approval import ChangeApproval
from gateway.features.kit import Kit, UseCases
from gateway.features.namespaces.namespace_moves import UseApproval
from gateway.features.warehouses.warehouses import require_manager, require_versions, warehouse_answer

ApproveWarehouse: TypeAlias = Callable[
    [Permit[DeleteWarehouse] | Permit[RenameWarehouse], ResolvedWarehouse], Awaitable[UseApproval]
]
"""Asks the verifiers about the deletion or the rename of a warehouse. Raises the refusal."""


async def _no_approval(_connection: Connection) -> None:
    """Do nothing, because verifiers do not evaluate the change."""


class WarehouseChanges(UseCases):
    """Change and delete warehouses. Each method raises WarehouseManaged if only instance admins may change the
    warehouse.

    `approve` is called before a deletion or a rename.
    """

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._approve = ChangeApproval(kit).of_warehouse

    async def rename(self, permit: Permit[RenameWarehouse]) -> Warehouse:
        """Rename a warehouse. Raises WarehouseNameAlreadyTaken."""
        name = permit.operation.new_name
        use_approval = await self._approve(permit, permit.warehouse(permit.operation.warehouse))
        try:
            return warehouse_answer(await self._change(permit, use_approval, name=name))
        except warehouses.NameTaken as taken:
            raise WarehouseNameAlreadyTaken(
                f"A warehouse with the name {name} already exists in the project. Choose another name."
            ) from taken

    async def activate(self, permit: Permit[ActivateWarehouse]) -> None:
        """Make the catalog serve a warehouse again. Idempotent."""
        await self._change(permit, active=True)

    async def deactivate(self, permit: Permit[DeactivateWarehouse]) -> None:
        """Make the catalog reject requests for a warehouse.

        Every later request reads the row and finds it inactive, regardless of cached decisions. Requests in flight read
        it again before they commit or vend credentials (`db/engine/decision_revalidation.py`).
        """
        await self._change(permit, active=False)

    async def protect(self, permit: Permit[SetWarehouseProtection]) -> ProtectionAnswer:
        """Set or clear the protection flag."""
        row = await self._change(permit, protected=permit.operation.protected)
        return ProtectionAnswer(protected=row.protected, updated_at=row.updated_at)

    async def set_managed_by(self, permit: Permit[SetWarehouseManagedBy]) -> Warehouse:
        """Set `managed-by`. Raises InstanceAdminRequired."""
        if not permit.actor.instance_admin:
            raise InstanceAdminRequired(
                "Only instance admins may set managed-by of a warehouse. The operator names them in the setting "
                "INSTANCE_ADMINS."
            )
        return warehouse_answer(await self._change(permit, managed_by=permit.operation.managed_by))

    async def set_delete_profile(self, permit: Permit[SetWarehouseDeleteProfile]) -> Warehouse:
        """Replace the delete profile. It applies only to later drops."""
        return warehouse_answer(
            await self._change(permit, delete_profile=msgspec.to_builtins(permit.operation.profile))
        )

    async def set_policy_loss(self, permit: Permit[SetWarehousePolicyLoss]) -> Warehouse:
        """Set `policy-loss`. It applies only to later changes."""
        return warehouse_answer(await self._change(permit, policy_loss=permit.operation.policy_loss))

    async def set_format_version_policy(self, permit: Permit[SetWarehouseFormatVersionPolicy]) -> Warehouse:
        """Replace the allowed and default format versions. Raises DefaultFormatVersionNotAllowed.

        They apply to tables that are created, registered or upgraded later. Existing tables stay unchanged.
        """
        request = permit.operation.request
        allowed = require_versions(request.allowed_format_versions, request.default_format_version)
        row = await self._change(
            permit, allowed_format_versions=allowed, default_format_version=request.default_format_version
        )
        return warehouse_answer(row)

    async def delete(self, permit: Permit[DeleteWarehouse]) -> None:
        """Delete an empty warehouse and every grant on it. Return when all those rights are revoked everywhere.

        Its storage stays unchanged. Raises WarehouseNotEmpty. Raises WarehouseProtected unless `force` is set. Raises
        WarehouseHasUnfinishedTasks while files wait for removal, unless `abandon_files` is set. Abandoned files stay
        for good, and the audit record lists them; otherwise an unreachable store would make the warehouse undeletable.
        Raises RevocationPending if the deletion is recorded but OpenFGA has not confirmed it yet.
        """
        operation = permit.operation
        resolved = permit.warehouse(operation.warehouse)
        use_approval = await self._approve(permit, resolved)
        async with self._database.change(permit) as connection:
            await use_approval(connection)
            row = await warehouses.locked(connection, resolved.id, to_delete=True)
            if row is None:
                raise not_found(operation.warehouse)
            require_manager(permit.actor, row)
            if row.protected and not operation.force:
                raise WarehouseProtected(
                    "The warehouse is protected. Remove its protection first, or delete it with force=true."
                )
            if not await warehouses.is_empty(connection, row.id):
                raise WarehouseNotEmpty("The warehouse is not empty. Drop its namespaces first.")
            if operation.abandon_files:
                locations, files = await warehouses.give_up_unfinished(connection, row.id)
                permit.pending_audit.add_details(places_left=_listed(locations), files_left=_listed(files))
            elif await warehouses.unfinished(connection, row.id):
                raise WarehouseHasUnfinishedTasks(
                    "The warehouse has unfinished tasks, or metadata files that are still to be removed. Wait until "
                    "they are done. Or delete it with abandon-files=true: the files then remain in the storage."
                )
            await warehouses.delete(connection, row.id)
            if row.secret_id is not None:
                await secrets.retire(connection, row.secret_id)
            project = ObjectKey(ObjectType.PROJECT, row.project_id)
            pending = await record_deleted(
                connection, resolved.key, project, above=(project,), warehouse_id=row.id, by=permit.actor.id
            )
        with pending_during_outage(
            "The warehouse is deleted, but the revocation of the grants on it is not yet complete. The gateway "
            "retries it; no further request is needed."
        ):
            await self._delivery.deliver(pending)

    async def _change(
        self, permit: Permit[ChangeWarehouse], use_approval: UseApproval = _no_approval, /, **values: object
    ) -> WarehouseRow:
        """Update the columns in `values`, and return the changed row."""
        ref = permit.operation.warehouse
        async with self._database.change(permit) as connection:
            row = await warehouses.locked(connection, ref.warehouse_id)
            if row is None:
                raise not_found(ref)
            if not isinstance(permit.operation, SetWarehouseManagedBy):
                require_manager(permit.actor, row)
            await use_approval(connection)
            changed = await warehouses.update(connection, ref.warehouse_id, values)
        return changed


def _listed(locations: Sequence[str]) -> str:
    """Return a JSON list of the locations. They can contain any character, so no separator would be unambiguous."""
    return msgspec.json.encode(locations).decode()
