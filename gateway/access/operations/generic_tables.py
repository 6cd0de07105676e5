# SPDX-License-Identifier: Apache-2.0
"""What can be asked about generic tables, at the reference system's paths (`lakekeeper.md` 1.5).

The catalog keeps what their creators tell and commits nothing to them; who may write writes to their place with keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation, ReadOperation, VendingOperation
from gateway.access.operations.renames import rename_demands
from gateway.access.refs import GenericTableRef, NamespaceRef, WarehouseRef
from gateway.access.relations import Can
from gateway.access.request import Body, InBody, InPath, PageSize, PageToken, Query
from gateway.iceberg.generic_tables import CreateGenericTableRequest, RenameGenericTableRequest
from gateway.iceberg.identifiers import TableIdentifier

_ALL = "/lakekeeper/v1/{prefix}/namespaces/{namespace}/generic-tables"


@dataclass(frozen=True)
class ListGenericTables(ReadOperation):
    """The generic tables of a namespace that the caller sees."""

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
    """A new generic table at an empty place; the creator owns it."""

    endpoint: ClassVar[str] = f"POST {_ALL}"
    namespace: InPath[NamespaceRef]
    request: InBody[CreateGenericTableRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_GENERIC_TABLE, self.namespace),)

    def facts(self) -> Facts:
        return _facts_of_creation(self.request)


@dataclass(frozen=True)
class AdoptGenericTable(ChangeOperation):
    """A new generic table at a place that may hold files; the creator owns it and gets keys for whatever lies there.

    It is what the header `X-Lakegate-Adopt: true` makes of a creation.
    """

    endpoint: ClassVar[str] = f"POST {_ALL}"
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
    """Keys for the generic table that is being created, for its creator: asked together with `CreateGenericTable`,
    served by its endpoint.
    """

    endpoint: ClassVar[str] = f"POST {_ALL}"
    namespace: NamespaceRef
    generic_table: str

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_GENERIC_TABLE, self.namespace),)


@dataclass(frozen=True)
class LoadGenericTable(ReadOperation):
    """What is told of a generic table."""

    endpoint: ClassVar[str] = f"GET {_ALL}/{{table}}"
    table: InPath[GenericTableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.table), Demand(Can.READ_DATA, self.table, required=False))


@dataclass(frozen=True)
class GenericTableExists(ReadOperation):
    """Whether the caller sees a generic table."""

    endpoint: ClassVar[str] = f"HEAD {_ALL}/{{table}}"
    returns: ClassVar[int] = 204
    table: InPath[GenericTableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.table),)


@dataclass(frozen=True)
class VendGenericTableCredentials(VendingOperation):
    """Temporary keys for exactly the generic table's prefix: to read with `can_read_data`, to change with
    `can_write_data`.
    """

    endpoint: ClassVar[str] = f"GET {_ALL}/{{table}}/credentials"
    table: InPath[GenericTableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.READ_DATA, self.table),
            Demand(Can.WRITE_DATA, self.table, required=False, changes=True),
        )


@dataclass(frozen=True)
class DropGenericTable(ChangeOperation):
    """A generic table goes. `purge` says whether its files go too; None leaves it to where they came from."""

    endpoint: ClassVar[str] = f"DELETE {_ALL}/{{table}}"
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
    returns: ClassVar[int] = 204
    source: Annotated[GenericTableRef, Body(RenameGenericTableRequest, "source.identifier")]
    destination: Annotated[TableIdentifier, Body(RenameGenericTableRequest, "destination.identifier")]

    def demands(self) -> tuple[Demand, ...]:
        return rename_demands(self.source, self.destination, Can.CREATE_GENERIC_TABLE)

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
