# SPDX-License-Identifier: Apache-2.0
"""Warehouse endpoints of the management API."""

from __future__ import annotations

from gateway.access.operations.warehouses import (
    CreateWarehouse,
    GetWarehouse,
    ListWarehouses,
    ValidateWarehouseCreation,
)
from gateway.access.wire import CreateWarehouseRequest, ValidationAnswer, Warehouse, WarehouseList
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.iceberg.errors import BadRequestException


@serves(CreateWarehouse)
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
    return await ctx.parts.warehouses.list(
        await ctx.admit(ListWarehouses(ctx.project(), _states(ctx.query("warehouseStatus"))))
    )


@serves(GetWarehouse)
async def get_warehouse(ctx: Ctx, warehouse_id: str) -> Warehouse:
    """One warehouse."""
    return await ctx.parts.warehouses.get(await ctx.admit(GetWarehouse(ctx.warehouse(warehouse_id))))


def _states(text: str | None) -> tuple[bool, ...]:
    if not text:
        return (True,)
    states = {part.strip().lower() for part in text.split(",")}
    if not states <= {"active", "inactive"}:
        raise BadRequestException("warehouseStatus is active, inactive, or both separated by a comma.")
    return tuple(state == "active" for state in sorted(states))
