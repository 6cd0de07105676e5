# SPDX-License-Identifier: Apache-2.0
"""The move of a namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.change_event import ChangeEvent, EventDeclaration
from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation
from gateway.access.refs import NamespaceIdRef, NamespaceRef, WarehouseRef
from gateway.access.relations import Can
from gateway.access.request import Body, InPath
from gateway.iceberg.identifiers import Namespace
from gateway.protocol.namespaces import MoveNamespaceRequest


@dataclass(frozen=True)
class MoveNamespace(ChangeOperation):
    """Move a namespace with its contents to another parent, or rename it. No file moves.

    A move determines which principals see the contents. So it needs the rights to manage grants and to create at the
    destination, also if that is the present parent.
    """

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/namespace/{namespace_id}/move"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="namespace")
    warehouse: InPath[WarehouseRef]
    namespace: InPath[NamespaceIdRef]
    destination: Annotated[Namespace, Body(MoveNamespaceRequest, "identifier")]
    force: Annotated[bool, Body(MoveNamespaceRequest, "force")] = False

    @property
    def parent(self) -> WarehouseRef | NamespaceRef:
        """The new parent: a namespace, or the warehouse for the top level."""
        above = self.destination.parent
        return self.warehouse if above is None else NamespaceRef(self.warehouse.warehouse_id, above)

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.MOVE, self.namespace),
            Demand(Can.CREATE_NAMESPACE, self.parent),
            Demand(Can.ACCEPT_MOVED_NAMESPACE, self.parent),
        )

    def facts(self) -> Facts:
        return {"destination": self.destination.levels, "force": self.force}
