# SPDX-License-Identifier: Apache-2.0
"""Operations on dropped tables and views that can be restored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from uuid import UUID

from gateway.access.change_event import EventDeclaration, EventPerTarget
from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.refs import (
    GenericTable,
    GenericTableRef,
    ObjectType,
    Ref,
    Table,
    TableRef,
    TabularRef,
    View,
    ViewRef,
    WarehouseRef,
)
from gateway.access.relations import Can
from gateway.access.request import InPath, PageSize, PageToken, Query

Kept = TableRef | ViewRef | GenericTableRef


def kept(type: ObjectType, warehouse_id: UUID, id: UUID) -> Kept:
    """Return a reference to a table, view or generic table that also finds a dropped object.

    Raises LookupError for another type.
    """
    match type:
        case ObjectType.TABLE:
            return TabularRef(Table, warehouse_id, id, dropped=True)
        case ObjectType.VIEW:
            return TabularRef(View, warehouse_id, id, dropped=True)
        case ObjectType.GENERIC_TABLE:
            return TabularRef(GenericTable, warehouse_id, id, dropped=True)
        case _:
            raise LookupError(f"a {type} is never dropped and kept")


@dataclass(frozen=True)
class ListDeletedTabulars(ReadOperation):
    """List the restorable dropped tables and views of a warehouse, or of one namespace, that the caller sees."""

    endpoint: ClassVar[str] = "GET /management/v1/warehouse/{warehouse_id}/deleted-tabulars"
    warehouse: InPath[WarehouseRef]
    namespace_id: Annotated[UUID | None, Query("namespaceId")] = None
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.USE, self.warehouse),
            Demand(Can.LIST_DELETED_TABULARS, self.warehouse),
            Demand(Can.LIST_EVERYTHING, self.warehouse, required=False),
        )


@dataclass(frozen=True)
class UndropTabulars(ChangeOperation):
    """Restore dropped tables and views, all or none. Each is decided separately."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/deleted-tabulars/undrop"
    event: ClassVar[EventDeclaration] = EventPerTarget("targets")
    returns: ClassVar[int] = 204
    warehouse: InPath[WarehouseRef]
    targets: tuple[Kept, ...]

    def demands(self) -> tuple[Demand, ...]:
        return tuple(Demand(Can.UNDROP, target) for target in self.targets)

    def parts(self) -> tuple[UndropTabulars, ...]:
        """Return one operation for each target, in the order of the request."""
        return tuple(UndropTabulars(self.warehouse, (target,)) for target in self.targets)

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.warehouse,)

    def facts(self) -> Facts:
        return {"targets": len(self.targets)}
