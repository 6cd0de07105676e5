# SPDX-License-Identifier: Apache-2.0
"""Endpoints of the management API about the storage of a warehouse."""

from __future__ import annotations

from gateway.access.operations.warehouses import (
    UpdateWarehouseStorage,
    UpdateWarehouseStorageCredential,
    ValidateWarehouseStorageAccess,
    ValidateWarehouseStorageCredential,
    ValidateWarehouseStorageProfile,
)
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.api.warehouses import repeat_change
from gateway.protocol.warehouse_storage import UpdateCredentialRequest, UpdateStorageRequest, ValidationAnswer
from gateway.protocol.warehouses import Warehouse


@serves(UpdateWarehouseStorage, repeat=repeat_change)
async def update_warehouse_storage(ctx: Ctx) -> Warehouse:
    """Another profile and credential."""
    on, request = targets.warehouse(ctx), await ctx.body(UpdateStorageRequest)
    return await ctx.parts.warehouse_storage.update(await ctx.admit(UpdateWarehouseStorage(on, request)))


@serves(UpdateWarehouseStorageCredential, repeat=repeat_change)
async def update_warehouse_storage_credential(ctx: Ctx) -> Warehouse:
    """Another credential."""
    on, request = targets.warehouse(ctx), await ctx.body(UpdateCredentialRequest)
    permit = await ctx.admit(UpdateWarehouseStorageCredential(on, request))
    return await ctx.parts.warehouse_storage.update_credential(permit)


@serves(ValidateWarehouseStorageProfile)
async def validate_warehouse_storage_profile(ctx: Ctx) -> ValidationAnswer:
    """Only validate an update of the storage."""
    on, request = targets.warehouse(ctx), await ctx.body(UpdateStorageRequest)
    permit = await ctx.admit(ValidateWarehouseStorageProfile(on, request))
    return await ctx.parts.warehouse_storage.validate_profile(permit)


@serves(ValidateWarehouseStorageCredential)
async def validate_warehouse_storage_credential(ctx: Ctx) -> ValidationAnswer:
    """Only validate an update of the credential."""
    on, request = targets.warehouse(ctx), await ctx.body(UpdateCredentialRequest)
    permit = await ctx.admit(ValidateWarehouseStorageCredential(on, request))
    return await ctx.parts.warehouse_storage.validate_credential(permit)


@serves(ValidateWarehouseStorageAccess)
async def validate_warehouse_storage_access(ctx: Ctx) -> ValidationAnswer:
    """Validate the storage as it is."""
    permit = await ctx.admit(ValidateWarehouseStorageAccess(targets.warehouse(ctx)))
    return await ctx.parts.warehouse_storage.validate_access(permit)
