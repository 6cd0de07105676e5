# SPDX-License-Identifier: Apache-2.0
"""What can be asked about grants: reading the assignments of an object and changing them (`lakekeeper.md` 3.6).

Each entry of a change needs the granting right of its own privilege on the object, so one request may be refused for
one of its entries; then none is applied. The grants API (`grant_lists.py`) demands the same in other words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import Durability, Operation
from gateway.access.privileges import Privilege, granting
from gateway.access.refs import Ref
from gateway.access.relations import Can
from gateway.access.tuples import Principal


@dataclass(frozen=True, slots=True)
class Assignment:
    """One privilege held by one principal on the object of the operation, and why and until when it is given."""

    privilege: Privilege
    principal: Principal
    reason: str | None = None
    expires_at: datetime | None = None

    @property
    def key(self) -> tuple[Privilege, Principal]:
        """What makes it the same grant."""
        return self.privilege, self.principal


def _to_grant(ref: Ref, entries: Iterable[Assignment]) -> tuple[Demand, ...]:
    """The granting right of each privilege once; reading rights when the change is empty."""
    rights = dict.fromkeys(granting(entry.privilege) for entry in entries)
    return tuple(Demand(right, ref) for right in rights) or (Demand(Can.READ_ASSIGNMENTS, ref),)


def _told(entries: Iterable[Assignment]) -> tuple[str, ...]:
    return tuple(f"{e.privilege}:{e.principal.type}:{e.principal.id}" for e in entries)


@dataclass(frozen=True)
class ReadingGrants:
    """Part of operations that tell who holds what on an object."""

    on: Ref

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_ASSIGNMENTS, self.on),)


@dataclass(frozen=True)
class WritingGrants:
    """Part of operations that give and take privileges on an object.

    Policies are told, for each of `writes` and in its order, its end (RFC 3339) or an empty text, and whether a reason
    is given.
    """

    returns: ClassVar[int] = 204
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    on: Ref
    writes: tuple[Assignment, ...]
    deletes: tuple[Assignment, ...]

    def demands(self) -> tuple[Demand, ...]:
        return _to_grant(self.on, (*self.writes, *self.deletes))

    def facts(self) -> Facts:
        return {
            "writes": _told(self.writes),
            "deletes": _told(self.deletes),
            "write_ends": tuple("" if e.expires_at is None else e.expires_at.isoformat() for e in self.writes),
            "all_reasoned": all(e.reason is not None for e in self.writes),
        }


@dataclass(frozen=True)
class ReadingAssignments(ReadingGrants):
    """As the assignments API reads: `privileges` narrows what is told, empty is all."""

    privileges: tuple[Privilege, ...] = ()


@dataclass(frozen=True)
class ReadServerAssignments(ReadingAssignments, Operation):
    """Who holds what on the server."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/server/assignments"


@dataclass(frozen=True)
class WriteServerAssignments(WritingGrants, Operation):
    """Give and take privileges on the server."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/server/assignments"


@dataclass(frozen=True)
class ReadDefaultProjectAssignments(ReadingAssignments, Operation):
    """Who holds what on the project of the request."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/project/assignments"


@dataclass(frozen=True)
class WriteDefaultProjectAssignments(WritingGrants, Operation):
    """Give and take privileges on the project of the request."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/project/assignments"


@dataclass(frozen=True)
class ReadProjectAssignments(ReadingAssignments, Operation):
    """Who holds what on a project."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/project/{project_id}/assignments"


@dataclass(frozen=True)
class WriteProjectAssignments(WritingGrants, Operation):
    """Give and take privileges on a project."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/project/{project_id}/assignments"


@dataclass(frozen=True)
class ReadWarehouseAssignments(ReadingAssignments, Operation):
    """Who holds what on a warehouse."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/warehouse/{warehouse_id}/assignments"


@dataclass(frozen=True)
class WriteWarehouseAssignments(WritingGrants, Operation):
    """Give and take privileges on a warehouse."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/warehouse/{warehouse_id}/assignments"


@dataclass(frozen=True)
class ReadNamespaceAssignments(ReadingAssignments, Operation):
    """Who holds what on a namespace."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/namespace/{namespace_id}/assignments"


@dataclass(frozen=True)
class WriteNamespaceAssignments(WritingGrants, Operation):
    """Give and take privileges on a namespace."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/namespace/{namespace_id}/assignments"


@dataclass(frozen=True)
class ReadTableAssignments(ReadingAssignments, Operation):
    """Who holds what on a table."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/warehouse/{warehouse_id}/table/{table_id}/assignments"


@dataclass(frozen=True)
class WriteTableAssignments(WritingGrants, Operation):
    """Give and take privileges on a table."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/warehouse/{warehouse_id}/table/{table_id}/assignments"


@dataclass(frozen=True)
class ReadViewAssignments(ReadingAssignments, Operation):
    """Who holds what on a view."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/warehouse/{warehouse_id}/view/{view_id}/assignments"


@dataclass(frozen=True)
class ReadGenericTableAssignments(ReadingAssignments, Operation):
    """Who holds what on a generic table."""

    endpoint: ClassVar[str] = (
        "GET /management/v1/permissions/warehouse/{warehouse_id}/generic-table/{generic_table_id}/assignments"
    )


@dataclass(frozen=True)
class WriteViewAssignments(WritingGrants, Operation):
    """Give and take privileges on a view."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/warehouse/{warehouse_id}/view/{view_id}/assignments"


@dataclass(frozen=True)
class WriteGenericTableAssignments(WritingGrants, Operation):
    """Give and take privileges on a generic table."""

    endpoint: ClassVar[str] = (
        "POST /management/v1/permissions/warehouse/{warehouse_id}/generic-table/{generic_table_id}/assignments"
    )


@dataclass(frozen=True)
class ReadRoleAssignments(ReadingAssignments, Operation):
    """Who holds what on a role."""

    endpoint: ClassVar[str] = "GET /management/v1/permissions/role/{role_id}/assignments"


@dataclass(frozen=True)
class WriteRoleAssignments(WritingGrants, Operation):
    """Give and take privileges on a role."""

    endpoint: ClassVar[str] = "POST /management/v1/permissions/role/{role_id}/assignments"


ReadAssignments = (
    ReadServerAssignments
    | ReadDefaultProjectAssignments
    | ReadProjectAssignments
    | ReadWarehouseAssignments
    | ReadNamespaceAssignments
    | ReadTableAssignments
    | ReadViewAssignments
    | ReadGenericTableAssignments
    | ReadRoleAssignments
)
WriteAssignments = (
    WriteServerAssignments
    | WriteDefaultProjectAssignments
    | WriteProjectAssignments
    | WriteWarehouseAssignments
    | WriteNamespaceAssignments
    | WriteTableAssignments
    | WriteViewAssignments
    | WriteGenericTableAssignments
    | WriteRoleAssignments
)
