# SPDX-License-Identifier: Apache-2.0
"""Operations on mapping tables. They map users and roles to values, which row filters of data policies compare with
columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, Name, ProjectId, StrictRequest, UserId
from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.operations.roles import Description
from gateway.access.request import InBody, InPath, OfRequest, PageSize, PageToken, RequestProject

_ONE = "/management/v1/mapping-table/{mapping_table_id}"


@dataclass(frozen=True)
class CreateMappingTable(ChangeOperation):
    """Create an empty mapping table in a project."""

    endpoint: ClassVar[str] = "POST /management/v1/mapping-table"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="project")
    returns: ClassVar[int] = 201
    project: Annotated[ProjectRef, RequestProject(in_body=True)]
    request: InBody[CreateMappingTableRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.MANAGE_MAPPING_TABLES, self.project),)

    def facts(self) -> Facts:
        return {"mapping_table_name": self.request.name}


@dataclass(frozen=True)
class ListMappingTables(ReadOperation):
    """List the mapping tables of a project."""

    endpoint: ClassVar[str] = "GET /management/v1/mapping-table"
    project: OfRequest
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.MANAGE_MAPPING_TABLES, self.project),)


@dataclass(frozen=True)
class _OfMappingTable:
    """Mixin of operations on one mapping table in the project of the request."""

    project: OfRequest
    mapping_table_id: InPath[UUID]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.MANAGE_MAPPING_TABLES, self.project),)


@dataclass(frozen=True)
class GetMappingTable(_OfMappingTable, ReadOperation):
    """Return a mapping table, without its entries."""

    endpoint: ClassVar[str] = f"GET {_ONE}"


@dataclass(frozen=True)
class DeleteMappingTable(_OfMappingTable, ChangeOperation):
    """Delete a mapping table. Tests of row filters that use it are false from then on."""

    endpoint: ClassVar[str] = f"DELETE {_ONE}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="project")
    returns: ClassVar[int] = 204

    def facts(self) -> Facts:
        return {"mapping_table_id": str(self.mapping_table_id)}


@dataclass(frozen=True)
class ListMappingEntries(_OfMappingTable, ReadOperation):
    """List the principals of a mapping table with their values."""

    endpoint: ClassVar[str] = f"GET {_ONE}/entries"
    page_token: PageToken = None
    page_size: PageSize = None


@dataclass(frozen=True)
class ChangeMappingEntries(_OfMappingTable, ChangeOperation):
    """Set and remove the values of principals in a mapping table."""

    endpoint: ClassVar[str] = f"POST {_ONE}/entries"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="project")
    returns: ClassVar[int] = 204
    request: InBody[ChangeEntriesRequest]

    def facts(self) -> Facts:
        """Return the principals of the changed entries, without their values, which can be confidential."""
        return {
            "mapping_table_id": str(self.mapping_table_id),
            "sets": tuple(f"{each.principal.type}:{each.principal.id}" for each in self.request.set),
            "removes": tuple(f"{each.type}:{each.id}" for each in self.request.remove),
        }


Value = Annotated[str, msgspec.Meta(min_length=1, max_length=1024, pattern=r"^[^\x00]*(?![\s\S])$")]


class CreateMappingTableRequest(StrictRequest, frozen=True):
    """Request of `POST /mapping-table`."""

    name: Name
    description: Description | None = None
    project_id: ProjectId | None = None


class MappingTableAnswer(Answer, frozen=True, omit_defaults=True):
    """A mapping table: values of users and roles, for row filters."""

    id: UUID
    project_id: str
    name: str
    created_at: datetime
    description: str | None = None


class MappingTableList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /mapping-table`."""

    mapping_tables: list[MappingTableAnswer]
    next_page_token: str | None = None


class MappedPrincipal(StrictRequest, frozen=True, omit_defaults=True):
    """A user or a role. Exactly one of the two is set."""

    user: UserId | None = None
    role: UUID | None = None

    def __post_init__(self) -> None:
        if (self.user is None) == (self.role is None):
            raise ValueError("a principal needs either `user` or `role`")

    @property
    def type(self) -> str:
        """The type of the principal, `user` or `role`."""
        return "role" if self.user is None else "user"

    @property
    def id(self) -> str:
        """The id of the user or role."""
        return str(self.role) if self.user is None else self.user


class MappingEntry(StrictRequest, frozen=True):
    """The values of one principal."""

    principal: MappedPrincipal
    values: Annotated[tuple[Value, ...], msgspec.Meta(min_length=1, max_length=1_000)]


class ChangeEntriesRequest(StrictRequest, frozen=True):
    """Request of `POST /mapping-table/{id}/entries`. `set` replaces all values of a principal."""

    set: Annotated[tuple[MappingEntry, ...], msgspec.Meta(max_length=1_000)] = ()
    remove: Annotated[tuple[MappedPrincipal, ...], msgspec.Meta(max_length=1_000)] = ()


class MappingEntryList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /mapping-table/{id}/entries`."""

    entries: list[MappingEntry]
    next_page_token: str | None = None
