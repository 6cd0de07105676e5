# SPDX-License-Identifier: Apache-2.0
"""What can be asked about the names of tables and views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import Durability, Operation
from gateway.access.refs import GenericTableRef, NamespaceRef, TableRef, ViewRef
from gateway.access.relations import Can
from gateway.iceberg.identifiers import TableIdentifier


@dataclass(frozen=True)
class RenameTable(Operation):
    """Another name for a table, in another namespace of the warehouse too. Who may only rename cannot put it anywhere:
    another namespace takes the right to create tables there.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/tables/rename"
    returns: ClassVar[int] = 204
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    source: TableRef
    destination: TableIdentifier

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.RENAME, self.source), *_to_arrive(self.source, self.destination, Can.CREATE_TABLE))

    def facts(self) -> Facts:
        return _told(self.destination)


@dataclass(frozen=True)
class RenameView(Operation):
    """Another name for a view, by the rules of `RenameTable`."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/views/rename"
    returns: ClassVar[int] = 204
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    source: ViewRef
    destination: TableIdentifier

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.RENAME, self.source), *_to_arrive(self.source, self.destination, Can.CREATE_VIEW))

    def facts(self) -> Facts:
        return _told(self.destination)


def arrival(source: TableRef | ViewRef | GenericTableRef, destination: TableIdentifier) -> NamespaceRef | None:
    """The namespace that a rename leads to, None when it stays in its own."""
    if destination.namespace.key == source.identifier.namespace.key:
        return None
    return NamespaceRef(source.warehouse_id, destination.namespace)


def _to_arrive(source: TableRef | ViewRef, destination: TableIdentifier, right: Can) -> tuple[Demand, ...]:
    at = arrival(source, destination)
    return () if at is None else (Demand(right, at),)


def _told(destination: TableIdentifier) -> Facts:
    return {"destination_namespace": destination.namespace.levels, "destination_name": destination.name}
