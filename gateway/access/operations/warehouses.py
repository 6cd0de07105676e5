# SPDX-License-Identifier: Apache-2.0
"""What can be asked about warehouses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import Durability, Operation
from gateway.access.refs import ProjectRef, WarehouseRef
from gateway.access.relations import Can
from gateway.access.wire import CreateWarehouseRequest


@dataclass(frozen=True)
class CreateWarehouse(Operation):
    """A new warehouse in a project, after its storage was validated; the creator owns it."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse"
    returns: ClassVar[int] = 201
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    project: ProjectRef
    request: CreateWarehouseRequest

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_WAREHOUSE, self.project),)

    def facts(self) -> Facts:
        return {"warehouse_name": self.request.warehouse_name}


@dataclass(frozen=True)
class ValidateWarehouseCreation(Operation):
    """The checks a creation would make, reported one by one; nothing is created."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse-creation-validation"
    reads_because: ClassVar[str] = "it only tries the store, and takes its trial file away again"
    project: ProjectRef
    request: CreateWarehouseRequest

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_WAREHOUSE, self.project),)


@dataclass(frozen=True)
class ListWarehouses(Operation):
    """The warehouses of a project that the caller sees."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse"
    project: ProjectRef
    active: tuple[bool, ...] = (True,)

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.LIST_WAREHOUSES, self.project),)


@dataclass(frozen=True)
class GetWarehouse(Operation):
    """One warehouse, without its secrets."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}"
    warehouse: WarehouseRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.warehouse),)
