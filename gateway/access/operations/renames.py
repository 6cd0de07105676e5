# SPDX-License-Identifier: Apache-2.0
"""Operations on the names of tables and views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.change_event import ChangeEvent, EventData, EventDeclaration
from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation
from gateway.access.refs import GenericTableRef, NamespaceRef, TableRef, ViewRef
from gateway.access.relations import Can
from gateway.access.request import Body
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.wire import RenameRequest, TableIdentifierBody


@dataclass(frozen=True)
class RenameTable(ChangeOperation):
    """Rename a table, or move it to another namespace of the same warehouse.

    A new name in the same namespace needs `can_rename`. A move needs `can_move`, because the rights on the new
    namespace then apply to the table, and the right to create tables there.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/tables/rename"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="source", data=EventData.BODY)
    returns: ClassVar[int] = 204
    source: Annotated[TableRef, Body(RenameRequest, "source.identifier")]
    destination: Annotated[TableIdentifier, Body(RenameRequest, "destination.identifier")]

    def demands(self) -> tuple[Demand, ...]:
        return rename_demands(self.source, self.destination, Can.CREATE_TABLE)

    def event_body(self) -> RenameRequest:
        return rename_body(self.source, self.destination)

    def facts(self) -> Facts:
        return _destination_facts(self.destination)


@dataclass(frozen=True)
class RenameView(ChangeOperation):
    """Rename or move a view, by the rules of `RenameTable`."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/views/rename"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="source", data=EventData.NOTHING)
    returns: ClassVar[int] = 204
    source: Annotated[ViewRef, Body(RenameRequest, "source.identifier")]
    destination: Annotated[TableIdentifier, Body(RenameRequest, "destination.identifier")]

    def demands(self) -> tuple[Demand, ...]:
        return rename_demands(self.source, self.destination, Can.CREATE_VIEW)

    def facts(self) -> Facts:
        return _destination_facts(self.destination)


def destination_namespace(
    source: TableRef | ViewRef | GenericTableRef, destination: TableIdentifier
) -> NamespaceRef | None:
    """Return the namespace of `destination`; None if it is the namespace of `source`.

    Namespaces are compared by the case-folded key that identifies their rows, not by their spelling.
    """
    if destination.namespace.key == source.identifier.namespace.key:
        return None
    return NamespaceRef(source.warehouse_id, destination.namespace)


def rename_body(source: TableRef | ViewRef | GenericTableRef, destination: TableIdentifier) -> RenameRequest:
    """Return the body of the request, for the event of the rename."""
    return RenameRequest(
        source=TableIdentifierBody.of(source.identifier), destination=TableIdentifierBody.of(destination)
    )


def rename_demands(
    source: TableRef | ViewRef | GenericTableRef, destination: TableIdentifier, create: Can
) -> tuple[Demand, ...]:
    """Return the demands of a rename; `create` is the right to create such an object in the destination namespace."""
    at = destination_namespace(source, destination)
    return (Demand(Can.RENAME, source),) if at is None else (Demand(Can.MOVE, source), Demand(create, at))


def _destination_facts(destination: TableIdentifier) -> Facts:
    return {"destination_namespace": destination.namespace.levels, "destination_name": destination.name}
