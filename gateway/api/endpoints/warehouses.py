# SPDX-License-Identifier: Apache-2.0
"""Warehouse endpoints of the management API."""

from __future__ import annotations

from uuid import UUID

from gateway.access.idempotency import RecordedSuccess
from gateway.access.operations.warehouses import (
    ActivateWarehouse,
    CreateWarehouse,
    DeactivateWarehouse,
    DeleteWarehouse,
    GetWarehouse,
    ListWarehouses,
    RenameWarehouse,
    SetWarehouseDeleteProfile,
    SetWarehouseFormatVersionPolicy,
    SetWarehouseManagedBy,
    SetWarehousePolicyLoss,
    SetWarehouseProtection,
    ValidateWarehouseCreation,
)
from gateway.access.refs import WarehouseRef
from gateway.api.context import Ctx
from gateway.api.serves import replay_by, serve
from gateway.governance.warehouse_changes import WarehouseChanges
from gateway.governance.warehouses import Warehouses
from gateway.protocol.protection import ProtectionAnswer
from gateway.protocol.warehouses import Warehouse


async def replay_create(ctx: Ctx, recorded_success: RecordedSuccess) -> Warehouse:
    """Return the current warehouse."""
    created = WarehouseRef(UUID(recorded_success.detail["warehouse_id"]))
    return await ctx.services.warehouses.get(await ctx.admit(GetWarehouse(created)))


async def replay_protection(ctx: Ctx, recorded_success: RecordedSuccess) -> ProtectionAnswer:
    """Return the current protection of the warehouse."""
    warehouse = await ctx.services.warehouses.get(await ctx.admit(await ctx.read(GetWarehouse)))
    return ProtectionAnswer(protected=warehouse.protected, updated_at=warehouse.updated_at)


#: Returns the current warehouse, which includes the change and any later ones.
_AS_IT_IS = replay_by(GetWarehouse, Warehouses.get)
serve(CreateWarehouse, Warehouses.create, replay=replay_create)
serve(ValidateWarehouseCreation, Warehouses.validate_creation)
serve(ListWarehouses, Warehouses.list)
serve(GetWarehouse, Warehouses.get)
serve(RenameWarehouse, WarehouseChanges.rename, replay=_AS_IT_IS)
serve(ActivateWarehouse, WarehouseChanges.activate)
serve(DeactivateWarehouse, WarehouseChanges.deactivate)
serve(DeleteWarehouse, WarehouseChanges.delete)
serve(SetWarehouseProtection, WarehouseChanges.protect, replay=replay_protection)
serve(SetWarehouseManagedBy, WarehouseChanges.set_managed_by, replay=_AS_IT_IS)
serve(SetWarehouseDeleteProfile, WarehouseChanges.set_delete_profile, replay=_AS_IT_IS)
serve(SetWarehousePolicyLoss, WarehouseChanges.set_policy_loss, replay=_AS_IT_IS)
serve(SetWarehouseFormatVersionPolicy, WarehouseChanges.set_format_version_policy, replay=_AS_IT_IS)
