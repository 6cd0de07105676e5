# SPDX-License-Identifier: Apache-2.0
"""Operations on mapping tables: values of users and roles that row filters of data policies compare with columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from uuid import UUID

from gateway.access.change_event import ChangeEvent, EventDeclaration
from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.refs import ProjectRef
from gateway.access.relations import Can
from gateway.access.request import InBody, InPath, OfRequest, PageSize, PageToken, RequestProject
from gateway.protocol.mapping_tables import ChangeEntriesRequest, CreateMappingTableRequest

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
    """Mixin of operations on one mapping table of the project of the request."""

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
        """Return the principals. The values can be confidential."""
        return {
            "mapping_table_id": str(self.mapping_table_id),
            "sets": tuple(f"{each.principal.type}:{each.principal.id}" for each in self.request.set),
            "removes": tuple(f"{each.type}:{each.id}" for each in self.request.remove),
        }
