# SPDX-License-Identifier: Apache-2.0
"""What can be asked about grants: reading the assignments of an object and changing them.

Each entry of a change needs the granting right of its own privilege on the object, so one request may be refused for
one of its entries; then none is applied.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import Durability, Operation
from gateway.access.privileges import Privilege, granting
from gateway.access.refs import NamespaceIdRef, ProjectRef, Ref, RoleRef, ServerRef, TableIdRef, ViewIdRef, WarehouseRef
from gateway.access.relations import Can
from gateway.access.tuples import Principal


@dataclass(frozen=True, slots=True)
class Assignment:
    """One privilege held by one principal on the object of the operation."""

    privilege: Privilege
    principal: Principal


def _to_grant(ref: Ref, entries: Iterable[Assignment]) -> tuple[Demand, ...]:
    """The granting right of each privilege once; reading rights when the change is empty."""
    rights = dict.fromkeys(granting(entry.privilege) for entry in entries)
    return tuple(Demand(right, ref) for right in rights) or (Demand(Can.READ_ASSIGNMENTS, ref),)


def _told(writes: tuple[Assignment, ...], deletes: tuple[Assignment, ...]) -> Facts:
    return {
        "writes": tuple(f"{e.privilege}:{e.principal.type}:{e.principal.id}" for e in writes),
        "deletes": tuple(f"{e.privilege}:{e.principal.type}:{e.principal.id}" for e in deletes),
    }


@dataclass(frozen=True)
class ReadServerAssignments(Operation):
    """Who holds what on the server."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/server/assignments"

    @property
    def on(self) -> ServerRef:
        """The server."""
        return ServerRef()

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_ASSIGNMENTS, self.on),)


@dataclass(frozen=True)
class WriteServerAssignments(Operation):
    """Give and take privileges on the server."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/server/assignments"
    returns: ClassVar[int] = 204
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    writes: tuple[Assignment, ...]
    deletes: tuple[Assignment, ...]

    @property
    def on(self) -> ServerRef:
        """The server."""
        return ServerRef()

    def demands(self) -> tuple[Demand, ...]:
        return _to_grant(self.on, (*self.writes, *self.deletes))

    def facts(self) -> Facts:
        return _told(self.writes, self.deletes)


@dataclass(frozen=True)
class ReadProjectAssignments(Operation):
    """Who holds what on a project."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/project/{project_id}/assignments"
    on: ProjectRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_ASSIGNMENTS, self.on),)


@dataclass(frozen=True)
class WriteProjectAssignments(Operation):
    """Give and take privileges on a project."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/project/{project_id}/assignments"
    returns: ClassVar[int] = 204
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    on: ProjectRef
    writes: tuple[Assignment, ...]
    deletes: tuple[Assignment, ...]

    def demands(self) -> tuple[Demand, ...]:
        return _to_grant(self.on, (*self.writes, *self.deletes))

    def facts(self) -> Facts:
        return _told(self.writes, self.deletes)


@dataclass(frozen=True)
class ReadWarehouseAssignments(Operation):
    """Who holds what on a warehouse."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/warehouse/{warehouse_id}/assignments"
    on: WarehouseRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_ASSIGNMENTS, self.on),)


@dataclass(frozen=True)
class WriteWarehouseAssignments(Operation):
    """Give and take privileges on a warehouse."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/warehouse/{warehouse_id}/assignments"
    returns: ClassVar[int] = 204
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    on: WarehouseRef
    writes: tuple[Assignment, ...]
    deletes: tuple[Assignment, ...]

    def demands(self) -> tuple[Demand, ...]:
        return _to_grant(self.on, (*self.writes, *self.deletes))

    def facts(self) -> Facts:
        return _told(self.writes, self.deletes)


@dataclass(frozen=True)
class ReadNamespaceAssignments(Operation):
    """Who holds what on a namespace."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/namespace/{namespace_id}/assignments"
    on: NamespaceIdRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_ASSIGNMENTS, self.on),)


@dataclass(frozen=True)
class WriteNamespaceAssignments(Operation):
    """Give and take privileges on a namespace."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/namespace/{namespace_id}/assignments"
    returns: ClassVar[int] = 204
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    on: NamespaceIdRef
    writes: tuple[Assignment, ...]
    deletes: tuple[Assignment, ...]

    def demands(self) -> tuple[Demand, ...]:
        return _to_grant(self.on, (*self.writes, *self.deletes))

    def facts(self) -> Facts:
        return _told(self.writes, self.deletes)


@dataclass(frozen=True)
class ReadTableAssignments(Operation):
    """Who holds what on a table."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/warehouse/{warehouse_id}/table/{table_id}/assignments"
    on: TableIdRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_ASSIGNMENTS, self.on),)


@dataclass(frozen=True)
class WriteTableAssignments(Operation):
    """Give and take privileges on a table."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/warehouse/{warehouse_id}/table/{table_id}/assignments"
    returns: ClassVar[int] = 204
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    on: TableIdRef
    writes: tuple[Assignment, ...]
    deletes: tuple[Assignment, ...]

    def demands(self) -> tuple[Demand, ...]:
        return _to_grant(self.on, (*self.writes, *self.deletes))

    def facts(self) -> Facts:
        return _told(self.writes, self.deletes)


@dataclass(frozen=True)
class ReadViewAssignments(Operation):
    """Who holds what on a view."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/warehouse/{warehouse_id}/view/{view_id}/assignments"
    on: ViewIdRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_ASSIGNMENTS, self.on),)


@dataclass(frozen=True)
class WriteViewAssignments(Operation):
    """Give and take privileges on a view."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/warehouse/{warehouse_id}/view/{view_id}/assignments"
    returns: ClassVar[int] = 204
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    on: ViewIdRef
    writes: tuple[Assignment, ...]
    deletes: tuple[Assignment, ...]

    def demands(self) -> tuple[Demand, ...]:
        return _to_grant(self.on, (*self.writes, *self.deletes))

    def facts(self) -> Facts:
        return _told(self.writes, self.deletes)


@dataclass(frozen=True)
class ReadRoleAssignments(Operation):
    """Who holds what on a role."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/role/{role_id}/assignments"
    on: RoleRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_ASSIGNMENTS, self.on),)


@dataclass(frozen=True)
class WriteRoleAssignments(Operation):
    """Give and take privileges on a role."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/role/{role_id}/assignments"
    returns: ClassVar[int] = 204
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    on: RoleRef
    writes: tuple[Assignment, ...]
    deletes: tuple[Assignment, ...]

    def demands(self) -> tuple[Demand, ...]:
        return _to_grant(self.on, (*self.writes, *self.deletes))

    def facts(self) -> Facts:
        return _told(self.writes, self.deletes)


ReadAssignments = (
    ReadServerAssignments
    | ReadProjectAssignments
    | ReadWarehouseAssignments
    | ReadNamespaceAssignments
    | ReadTableAssignments
    | ReadViewAssignments
    | ReadRoleAssignments
)
WriteAssignments = (
    WriteServerAssignments
    | WriteProjectAssignments
    | WriteWarehouseAssignments
    | WriteNamespaceAssignments
    | WriteTableAssignments
    | WriteViewAssignments
    | WriteRoleAssignments
)
