# SPDX-License-Identifier: Apache-2.0
"""Operations on generic tables, which are tables of other formats than Iceberg, at the paths of Lakekeeper.

The catalog stores the properties that the creator gives, and has no commits for generic tables. Writers write to the
table's location with credentials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventData, EventDeclaration, NoEvent
from gateway.access.nouns.refs import GenericTableRef, NamespaceRef, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation, ReadOperation, VendingOperation
from gateway.access.operations.tables import rename_body, rename_demands
from gateway.access.request import Body, InBody, InPath, PageSize, PageToken, Query
from gateway.iceberg.generic_tables import CreateGenericTableRequest, RenameGenericTableRequest
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.wire import RenameRequest
from gateway.obligations.application import EnforcementPoint

_ALL = "/lakekeeper/v1/{prefix}/namespaces/{namespace}/generic-tables"


@dataclass(frozen=True)
class ListGenericTables(ReadOperation):
    """List the generic tables of a namespace that the caller sees."""

    endpoint: ClassVar[str] = f"GET {_ALL}"
    namespace: InPath[NamespaceRef]
    page_token: PageToken = None
    page_size: PageSize = None
    return_protection_status: Annotated[bool, Query("returnProtectionStatus")] = False

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.LIST_GENERIC_TABLES, self.namespace),
            Demand(Can.LIST_EVERYTHING, self.namespace, required=False),
        )


@dataclass(frozen=True)
class CreateGenericTable(ChangeOperation):
    """Create a generic table at an empty location. The creator owns it."""

    endpoint: ClassVar[str] = f"POST {_ALL}"
    event: ClassVar[EventDeclaration] = ChangeEvent(
        on="namespace", new="generic_table_id", named="request.name", data=EventData.BODY
    )
    namespace: InPath[NamespaceRef]
    request: InBody[CreateGenericTableRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_GENERIC_TABLE, self.namespace),)

    def facts(self) -> Facts:
        return _facts_of_creation(self.request)


@dataclass(frozen=True)
class AdoptGenericTable(ChangeOperation):
    """Create a generic table at a location with existing files. The creator owns it and gets credentials for those
    files.

    The location may also be empty. The header `X-Lakegate-Adopt: true` selects this operation.
    """

    endpoint: ClassVar[str] = f"POST {_ALL}"
    event: ClassVar[EventDeclaration] = ChangeEvent(
        on="namespace", new="generic_table_id", named="request.name", type="createGenericTable", data=EventData.BODY
    )
    namespace: InPath[NamespaceRef]
    request: InBody[CreateGenericTableRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.CREATE_GENERIC_TABLE, self.namespace),
            Demand(Can.ADOPT_FILES, WarehouseRef(self.namespace.warehouse_id)),
        )

    def facts(self) -> Facts:
        return _facts_of_creation(self.request)


@dataclass(frozen=True)
class VendGenericTableCreationCredentials(ChangeOperation):
    """Vend credentials for a generic table to its creator.

    `CreateGenericTable` is decided with it, at the same endpoint.
    """

    endpoint: ClassVar[str] = f"POST {_ALL}"
    event: ClassVar[EventDeclaration] = NoEvent("it changes no object; the creation itself is announced")
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.VEND
    namespace: NamespaceRef
    generic_table: str

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_GENERIC_TABLE, self.namespace),)

    def new_table(self) -> str | None:
        return self.generic_table


@dataclass(frozen=True)
class LoadGenericTable(ReadOperation):
    """Load a generic table.

    Without `credentials`, the request is for the description alone, which data policies do not restrict.
    """

    endpoint: ClassVar[str] = f"GET {_ALL}/{{table}}"
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.LOAD
    table: InPath[GenericTableRef]
    credentials: bool = True

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.table), Demand(Can.READ_DATA, self.table, required=False))

    def enforced_at(self) -> EnforcementPoint | None:
        return EnforcementPoint.LOAD if self.credentials else EnforcementPoint.DESCRIBE


@dataclass(frozen=True)
class GenericTableExists(ReadOperation):
    """Check that a generic table exists and the caller sees it."""

    endpoint: ClassVar[str] = f"HEAD {_ALL}/{{table}}"
    returns: ClassVar[int] = 204
    table: InPath[GenericTableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.table),)


@dataclass(frozen=True)
class VendGenericTableCredentials(VendingOperation):
    """Vend temporary credentials for the generic table's prefix.

    They are for reads with `can_read_data`, also for writes with `can_write_data`.
    """

    endpoint: ClassVar[str] = f"GET {_ALL}/{{table}}/credentials"
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.VEND
    table: InPath[GenericTableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.READ_DATA, self.table),
            Demand(Can.WRITE_DATA, self.table, required=False, changes=True),
        )


@dataclass(frozen=True)
class DropGenericTable(ChangeOperation):
    """Drop a generic table.

    `purge` determines whether its files are deleted. Without the parameter, adopted files stay.
    """

    endpoint: ClassVar[str] = f"DELETE {_ALL}/{{table}}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="table", data=EventData.NOTHING)
    returns: ClassVar[int] = 204
    table: InPath[GenericTableRef]
    purge: Annotated[bool | None, Query("purgeRequested")] = None
    force: Annotated[bool, Query("force")] = False

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.DROP, self.table),)

    def facts(self) -> Facts:
        return {"purge": self.purge is not False, "force": self.force}


@dataclass(frozen=True)
class RenameGenericTable(ChangeOperation):
    """Rename or move a generic table, by the rules of `RenameTable`."""

    endpoint: ClassVar[str] = "POST /lakekeeper/v1/{prefix}/generic-tables/rename"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="source", data=EventData.BODY)
    returns: ClassVar[int] = 204
    source: Annotated[GenericTableRef, Body(RenameGenericTableRequest, "source.identifier")]
    destination: Annotated[TableIdentifier, Body(RenameGenericTableRequest, "destination.identifier")]

    def demands(self) -> tuple[Demand, ...]:
        return rename_demands(self.source, self.destination, Can.CREATE_GENERIC_TABLE)

    def event_body(self) -> RenameRequest:
        return rename_body(self.source, self.destination)

    def facts(self) -> Facts:
        return {
            "destination_namespace": self.destination.namespace.levels,
            "destination_name": self.destination.name,
        }


def _facts_of_creation(request: CreateGenericTableRequest) -> Facts:
    return {
        "generic_table": request.name,
        "format": request.format,
        "explicit_location": request.base_location is not None,
        "property_names": tuple(sorted(request.properties)),
    }
