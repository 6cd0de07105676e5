# SPDX-License-Identifier: Apache-2.0
"""Operations on namespaces: those of the catalog protocol, moves, and managed access.

Managed access on a namespace removes the right to grant from the owners of objects below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from uuid import UUID

from gateway.access.bodies import Answer, Request
from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.cards import VISIBLE_BY
from gateway.access.nouns.families import NAMESPACE, WAREHOUSE, declare_for_each
from gateway.access.nouns.refs import NamespaceIdRef, NamespaceRef, Ref, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.operations.actions import ManagedAccessRequest
from gateway.access.request import Body, InBody, InPath, PageSize, PageToken, Query
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
        """The object on which the caller needs the right to create: the parent namespace, or the warehouse for the top
        level.
        """
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


@dataclass(frozen=True)
class GetPermissions(ReadOperation, abstract=True):
    """Return whether access below an object is managed, for callers that see the object or manage its grants."""

    on: Ref

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(VISIBLE_BY[self.on.type], self.on, alternative=Can.READ_ASSIGNMENTS),)


@dataclass(frozen=True)
class SetManagedAccess(ChangeOperation, abstract=True):
    """Enable or disable managed access below an object, for callers that manage its grants."""

    event: ClassVar[EventDeclaration] = ChangeEvent(on="on", type="setManagedAccess")
    on: Ref
    managed: Annotated[bool, Body(ManagedAccessRequest, "managed_access")]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.SET_MANAGED_ACCESS, self.on),)

    def facts(self) -> Facts:
        return {"managed_access": self.managed}


GET_PERMISSIONS: tuple[type[GetPermissions], ...] = (
    *declare_for_each(
        GetPermissions,
        (WAREHOUSE,),
        name="Get{noun}Permissions",
        endpoint="GET /management/v1/permissions/{path}",
        doc="Return whether access to the contents of {words} is managed.",
    ),
    *declare_for_each(
        GetPermissions,
        (NAMESPACE,),
        name="Get{noun}Permissions",
        endpoint="GET /management/v1/permissions/{path}",
        doc="Return whether access to the contents of {words} is managed, by it or by a container above.",
    ),
)
SET_MANAGED_ACCESS: tuple[type[SetManagedAccess], ...] = declare_for_each(
    SetManagedAccess,
    (WAREHOUSE, NAMESPACE),
    name="Set{noun}ManagedAccess",
    endpoint="POST /management/v1/permissions/{path}/managed-access",
    doc="Manage access to the contents of {words}, or no longer.",
)


class MoveNamespaceRequest(Request, frozen=True):
    """Request of `POST …/namespace/{n}/move`. `destination` is the complete new path, with the new name last."""

    destination: tuple[str, ...]
    force: bool = False

    @property
    def identifier(self) -> Namespace:
        """Return the new path. Raises a CatalogError with code 400 if it is not a valid namespace."""
        return Namespace(self.destination)


class MovedNamespace(Answer, frozen=True, omit_defaults=True):
    """The new path of a moved namespace. A namespace of the top level has no parent."""

    namespace: tuple[str, ...]
    namespace_id: UUID
    parent_namespace_id: UUID | None = None
