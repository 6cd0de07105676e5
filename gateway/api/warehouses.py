# SPDX-License-Identifier: Apache-2.0
"""Warehouse endpoints of the management API."""

from __future__ import annotations

from uuid import UUID

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
    SetWarehouseProtection,
    ValidateWarehouseCreation,
)
from gateway.access.refs import WarehouseRef
from gateway.access.repetition import Remembered
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.iceberg.errors import BadRequestException
from gateway.protocol.protection import ProtectionAnswer, SetProtectionRequest
from gateway.protocol.warehouse_storage import ValidationAnswer
from gateway.protocol.warehouses import (
    CreateWarehouseRequest,
    DeleteProfileRequest,
    FormatVersionPolicyRequest,
    RenameWarehouseRequest,
    SetManagedByRequest,
    Warehouse,
    WarehouseList,
)


async def repeat_create(ctx: Ctx, remembered: Remembered) -> Warehouse:
    """The warehouse as it is now."""
    made = WarehouseRef(UUID(remembered.detail["warehouse_id"]))
    return await ctx.parts.warehouses.get(await ctx.admit(GetWarehouse(made)))


async def repeat_change(ctx: Ctx, remembered: Remembered) -> Warehouse:
    """The warehouse as it is now: the change is in it, and perhaps others are that followed."""
    return await ctx.parts.warehouses.get(await ctx.admit(GetWarehouse(targets.warehouse(ctx))))


@serves(CreateWarehouse, repeat=repeat_create)
async def create_warehouse(ctx: Ctx) -> Warehouse:
    """Create a warehouse after its storage was validated."""
    request = await ctx.body(CreateWarehouseRequest)
    operation = CreateWarehouse(ctx.project(request.project_id), request)
    return await ctx.parts.warehouses.create(await ctx.admit(operation))


@serves(ValidateWarehouseCreation)
async def validate_warehouse_creation(ctx: Ctx) -> ValidationAnswer:
    """Only validate."""
    request = await ctx.body(CreateWarehouseRequest)
    operation = ValidateWarehouseCreation(ctx.project(request.project_id), request)
    return await ctx.parts.warehouses.validate_creation(await ctx.admit(operation))


@serves(ListWarehouses)
async def list_warehouses(ctx: Ctx) -> WarehouseList:
    """The warehouses of the project that the caller sees."""
    states = _states(ctx.queries("warehouseStatus"))
    return await ctx.parts.warehouses.list(await ctx.admit(ListWarehouses(ctx.project(), states)))


@serves(GetWarehouse)
async def get_warehouse(ctx: Ctx) -> Warehouse:
    """One warehouse."""
    return await ctx.parts.warehouses.get(await ctx.admit(GetWarehouse(targets.warehouse(ctx))))


@serves(RenameWarehouse, repeat=repeat_change)
async def rename_warehouse(ctx: Ctx) -> Warehouse:
    """Another name."""
    on, request = targets.warehouse(ctx), await ctx.body(RenameWarehouseRequest)
    return await ctx.parts.warehouse_changes.rename(await ctx.admit(RenameWarehouse(on, request.new_name)))


@serves(ActivateWarehouse)
async def activate_warehouse(ctx: Ctx) -> None:
    """Serve it again."""
    await ctx.parts.warehouse_changes.activate(await ctx.admit(ActivateWarehouse(targets.warehouse(ctx))))


@serves(DeactivateWarehouse)
async def deactivate_warehouse(ctx: Ctx) -> None:
    """Serve it no more."""
    await ctx.parts.warehouse_changes.deactivate(await ctx.admit(DeactivateWarehouse(targets.warehouse(ctx))))


@serves(DeleteWarehouse)
async def delete_warehouse(ctx: Ctx) -> None:
    """Delete an empty warehouse."""
    operation = DeleteWarehouse(
        targets.warehouse(ctx), ctx.flag("force", False), abandon_files=ctx.flag("abandon-files", False)
    )
    await ctx.parts.warehouse_changes.delete(await ctx.admit(operation))


async def repeat_protection(ctx: Ctx, remembered: Remembered) -> ProtectionAnswer:
    """Whether it is protected now."""
    warehouse = await repeat_change(ctx, remembered)
    return ProtectionAnswer(protected=warehouse.protected, updated_at=warehouse.updated_at)


@serves(SetWarehouseProtection, repeat=repeat_protection)
async def set_warehouse_protection(ctx: Ctx) -> ProtectionAnswer:
    """Protect it, or no longer."""
    on, request = targets.warehouse(ctx), await ctx.body(SetProtectionRequest)
    permit = await ctx.admit(SetWarehouseProtection(on, request.protected))
    return await ctx.parts.warehouse_changes.protect(permit)


@serves(SetWarehouseManagedBy, repeat=repeat_change)
async def set_warehouse_managed_by(ctx: Ctx) -> Warehouse:
    """Say who manages it."""
    on, request = targets.warehouse(ctx), await ctx.body(SetManagedByRequest)
    permit = await ctx.admit(SetWarehouseManagedBy(on, request.managed_by))
    return await ctx.parts.warehouse_changes.set_managed_by(permit)


@serves(SetWarehouseDeleteProfile, repeat=repeat_change)
async def set_warehouse_delete_profile(ctx: Ctx) -> Warehouse:
    """Another delete profile."""
    on, request = targets.warehouse(ctx), await ctx.body(DeleteProfileRequest)
    permit = await ctx.admit(SetWarehouseDeleteProfile(on, request.delete_profile))
    return await ctx.parts.warehouse_changes.set_delete_profile(permit)


@serves(SetWarehouseFormatVersionPolicy, repeat=repeat_change)
async def set_warehouse_format_version_policy(ctx: Ctx) -> Warehouse:
    """Another policy of format versions."""
    on, request = targets.warehouse(ctx), await ctx.body(FormatVersionPolicyRequest)
    permit = await ctx.admit(SetWarehouseFormatVersionPolicy(on, request))
    return await ctx.parts.warehouse_changes.set_format_version_policy(permit)


def _states(given: list[str]) -> tuple[bool, ...]:
    if not given:
        return (True,)
    states = {part.lower() for part in given}
    if not states <= {"active", "inactive"}:
        raise BadRequestException("warehouseStatus is active, inactive, or both separated by a comma.")
    return tuple(state == "active" for state in sorted(states))
