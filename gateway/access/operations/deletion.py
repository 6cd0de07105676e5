# SPDX-License-Identifier: Apache-2.0
"""Operations on dropped tables and views that can be restored, and on protection.

A protected object can be dropped only with `force`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar, Literal
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, Request, StrictRequest
from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration, EventPerTarget
from gateway.access.nouns.families import NAMESPACE_IN_WAREHOUSE, TABULARS, declare_for_each
from gateway.access.nouns.refs import (
    GenericTable,
    GenericTableRef,
    NamespaceIdRef,
    ObjectType,
    Ref,
    Table,
    TableRef,
    TabularRef,
    View,
    ViewRef,
    WarehouseRef,
)
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.request import Body, InPath, PageSize, PageToken, Query

Kept = TableRef | ViewRef | GenericTableRef


def kept(type: ObjectType, warehouse_id: UUID, id: UUID) -> Kept:
    """Return a reference to a table, view or generic table that also finds a dropped one.

    Raises LookupError for another object type.
    """
    match type:
        case ObjectType.TABLE:
            return TabularRef(Table, warehouse_id, id, dropped=True)
        case ObjectType.VIEW:
            return TabularRef(View, warehouse_id, id, dropped=True)
        case ObjectType.GENERIC_TABLE:
            return TabularRef(GenericTable, warehouse_id, id, dropped=True)
        case _:
            raise LookupError(f"a {type} cannot be restored after a drop")


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
        """Return one operation for each object to restore, in the order of the request."""
        return tuple(UndropTabulars(self.warehouse, (target,)) for target in self.targets)

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.warehouse,)

    def facts(self) -> Facts:
        return {"targets": len(self.targets)}


#: The maximum number of tables and views that one request restores.
MAX_TARGETS = 100


class DeletedTabular(Answer, frozen=True, omit_defaults=True):
    """A dropped table or view that can be restored until `expiration-date`. The date is absent if the deletion task was
    cancelled: then the object is kept until it is restored.
    """

    id: UUID
    name: str
    namespace: list[str]
    typ: str
    warehouse_id: UUID
    created_at: datetime
    deleted_at: datetime
    expiration_date: datetime | None = None


class DeletedTabulars(Answer, frozen=True, omit_defaults=True):
    """Response of `GET …/deleted-tabulars`."""

    tabulars: list[DeletedTabular]
    next_page_token: str | None = None


class UndropTarget(Request, frozen=True):
    """A table or view to restore."""

    type: Literal["table", "view", "generic-table"]
    id: UUID


class UndropRequest(Request, frozen=True):
    """Request of `POST …/deleted-tabulars/undrop`."""

    targets: Annotated[tuple[UndropTarget, ...], msgspec.Meta(min_length=1, max_length=MAX_TARGETS)]


@dataclass(frozen=True)
class GetProtection(ReadOperation, abstract=True):
    """Return whether an object is protected, for callers that see it."""

    on: NamespaceIdRef | TableRef | ViewRef | GenericTableRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.on),)


@dataclass(frozen=True)
class SetProtection(ChangeOperation, abstract=True):
    """Protect an object, or end its protection."""

    event: ClassVar[EventDeclaration] = ChangeEvent(on="on", type="setProtection")
    on: NamespaceIdRef | TableRef | ViewRef | GenericTableRef
    protected: Annotated[bool, Body(SetProtectionRequest, "protected")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.SET_PROTECTION, self.on),)

    def facts(self) -> Facts:
        return {"protected": self.protected}


_ALL = (NAMESPACE_IN_WAREHOUSE, *TABULARS)
GET_PROTECTION: tuple[type[GetProtection], ...] = declare_for_each(
    GetProtection,
    _ALL,
    name="Get{noun}Protection",
    endpoint="GET /management/v1/{path}/protection",
    doc="Return whether {words} is protected.",
)
SET_PROTECTION: tuple[type[SetProtection], ...] = declare_for_each(
    SetProtection,
    _ALL,
    name="Set{noun}Protection",
    endpoint="POST /management/v1/{path}/protection",
    doc="Protect {words}, or end its protection.",
)


class SetProtectionRequest(StrictRequest, frozen=True):
    """Request of `POST …/protection`."""

    protected: bool


class ProtectionAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Response of `…/protection`. Its members are written with underscores, as in Lakekeeper's API."""

    protected: bool
    updated_at: datetime | None = None
