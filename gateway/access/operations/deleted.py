# SPDX-License-Identifier: Apache-2.0
"""What can be asked about tables and views that were dropped and are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from uuid import UUID

from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.refs import KeptGenericTableRef, KeptTableRef, KeptViewRef, Ref, WarehouseRef
from gateway.access.relations import Can
from gateway.access.request import InPath, PageSize, PageToken, Query

Kept = KeptTableRef | KeptViewRef | KeptGenericTableRef


@dataclass(frozen=True)
class ListDeletedTabulars(ReadOperation):
    """What was dropped in a warehouse, or in one namespace of it, as far as the caller sees it."""

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
    """Tables and views come back as they were, all of them or none. Each is decided as if it came alone."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/deleted-tabulars/undrop"
    returns: ClassVar[int] = 204
    warehouse: InPath[WarehouseRef]
    targets: tuple[Kept, ...]

    def demands(self) -> tuple[Demand, ...]:
        return tuple(Demand(Can.UNDROP, target) for target in self.targets)

    def parts(self) -> tuple[UndropTabulars, ...]:
        """One for each, in the order of the request."""
        return tuple(UndropTabulars(self.warehouse, (target,)) for target in self.targets)

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.warehouse,)

    def facts(self) -> Facts:
        return {"targets": len(self.targets)}
