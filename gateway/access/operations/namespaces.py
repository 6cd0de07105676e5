# SPDX-License-Identifier: Apache-2.0
"""Operations on namespaces in the catalog protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.change_event import ChangeEvent, EventDeclaration
from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.refs import NamespaceRef, WarehouseRef
from gateway.access.relations import Can
from gateway.access.request import InBody, InPath, PageSize, PageToken, Query
from gateway.iceberg.identifiers import Namespace
from gateway.iceberg.wire import CreateNamespaceRequest, UpdateNamespacePropertiesRequest


@dataclass(frozen=True)
class ListNamespaces(ReadOperation):
    """List the children of a namespace, or the top level of a warehouse, that the caller sees."""

    endpoint: ClassVar[str] = "GET /catalog/v1/{prefix}/namespaces"
    parent: WarehouseRef | NamespaceRef
    page_token: PageToken = None
    page_size: PageSize = None
    return_uuids: Annotated[bool, Query("returnUuids")] = False
    return_protection_status: Annotated[bool, Query("returnProtectionStatus")] = False

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.LIST_NAMESPACES, self.parent),
            Demand(Can.LIST_EVERYTHING, self.parent, required=False),
        )


@dataclass(frozen=True)
class CreateNamespace(ChangeOperation):
    """Create a namespace below an existing parent. The creator owns it."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse", new="namespace_id", named="namespace")
    warehouse: InPath[WarehouseRef]
    request: InBody[CreateNamespaceRequest]

    @property
    def namespace(self) -> Namespace:
        """The namespace to create."""
        return self.request.identifier

    @property
    def parent(self) -> WarehouseRef | NamespaceRef:
        """The object on which the right to create is demanded: the parent, or the warehouse for the top level."""
        above = self.namespace.parent
        return self.warehouse if above is None else NamespaceRef(self.warehouse.warehouse_id, above)

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_NAMESPACE, self.parent),)

    def facts(self) -> Facts:
        return {"namespace": self.namespace.levels, "property_names": tuple(sorted(self.request.properties or {}))}


@dataclass(frozen=True)
class LoadNamespace(ReadOperation):
    """Load a namespace's properties."""

    endpoint: ClassVar[str] = "GET /catalog/v1/{prefix}/namespaces/{namespace}"
    namespace: InPath[NamespaceRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.namespace),)


@dataclass(frozen=True)
class NamespaceExists(ReadOperation):
    """Check that a namespace exists and the caller sees it."""

    endpoint: ClassVar[str] = "HEAD /catalog/v1/{prefix}/namespaces/{namespace}"
    returns: ClassVar[int] = 204
    namespace: InPath[NamespaceRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.namespace),)


@dataclass(frozen=True)
class DropNamespace(ChangeOperation):
    """Drop an empty namespace, or with `recursive` one with its contents.

    `force` overrides protection and the warehouse's soft deletion. `purge` determines whether files are deleted;
    without it the warehouse does.
    """

    endpoint: ClassVar[str] = "DELETE /catalog/v1/{prefix}/namespaces/{namespace}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="namespace")
    returns: ClassVar[int] = 204
    namespace: InPath[NamespaceRef]
    recursive: Annotated[bool, Query("recursive")] = False
    force: Annotated[bool, Query("force")] = False
    purge: Annotated[bool | None, Query("purge")] = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.DELETE, self.namespace),)

    def facts(self) -> Facts:
        return {"recursive": self.recursive, "force": self.force, "purge": self.purge is not False}


@dataclass(frozen=True)
class UpdateNamespaceProperties(ChangeOperation):
    """Set and remove properties of a namespace."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/properties"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="namespace")
    namespace: InPath[NamespaceRef]
    request: InBody[UpdateNamespacePropertiesRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.UPDATE_PROPERTIES, self.namespace),)

    def facts(self) -> Facts:
        return {
            "updated_properties": tuple(sorted(self.request.updates or {})),
            "removed_properties": tuple(sorted(self.request.removals or ())),
        }
