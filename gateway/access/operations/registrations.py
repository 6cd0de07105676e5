# SPDX-License-Identifier: Apache-2.0
"""What can be asked about tables and views whose metadata files exist already: taking them in and letting them go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation
from gateway.access.refs import NamespaceRef, TableRef, WarehouseRef
from gateway.access.relations import Can
from gateway.access.request import InBody, InPath
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.wire import RegisterTableRequest, RegisterViewRequest


def _manages_storage(namespace: NamespaceRef) -> Demand:
    """Demand the right on the warehouse's storage that adopting files takes."""
    return Demand(Can.ADOPT_FILES, WarehouseRef(namespace.warehouse_id))


@dataclass(frozen=True)
class RegisterTable(ChangeOperation):
    """A table from a metadata file in a recorded location that the caller owned (`gateway.catalog.location_reuse`).

    With `overwrite` a table of this name goes, without its files. That takes a permit of its own (`DropTable`), asked
    in the same round, so that whatever keeps somebody from dropping the table keeps it from being overwritten.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/register"
    namespace: InPath[NamespaceRef]
    request: InBody[RegisterTableRequest]

    @property
    def table(self) -> TableRef:
        """The name the table is to have."""
        return TableRef(self.namespace.warehouse_id, TableIdentifier(self.namespace.namespace, self.request.name))

    def demands(self) -> tuple[Demand, ...]:
        return _demands_of_table(self.namespace, self.request, self.table)

    def facts(self) -> Facts:
        return _facts_of_table(self.request)


@dataclass(frozen=True)
class AdoptTable(ChangeOperation):
    """A table from a metadata file anywhere below the warehouse's base; the caller owns it.

    It is what the header `X-Lakegate-Adopt: true` makes of a registration: for files of other catalogs and for files
    that no record knows. `overwrite` is as for `RegisterTable`.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/register"
    namespace: InPath[NamespaceRef]
    request: InBody[RegisterTableRequest]

    @property
    def table(self) -> TableRef:
        """The name the table is to have."""
        return TableRef(self.namespace.warehouse_id, TableIdentifier(self.namespace.namespace, self.request.name))

    def demands(self) -> tuple[Demand, ...]:
        return (*_demands_of_table(self.namespace, self.request, self.table), _manages_storage(self.namespace))

    def facts(self) -> Facts:
        return _facts_of_table(self.request)


@dataclass(frozen=True)
class UnregisterTable(ChangeOperation):
    """Remove a table from the catalog and leave all its files, for another registration.

    This takes ownership or `manage_grants`. `modify` allows a drop, and must not decide the next owner of the files.
    The answer holds the last metadata, so its reader needs the right to read that.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister"
    table: InPath[TableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.UNREGISTER, self.table), Demand(Can.GET_METADATA, self.table))


@dataclass(frozen=True)
class RegisterView(ChangeOperation):
    """A view from a metadata file in a recorded location that the caller owned (`gateway.catalog.location_reuse`)."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/register-view"
    namespace: InPath[NamespaceRef]
    request: InBody[RegisterViewRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_VIEW, self.namespace),)

    def facts(self) -> Facts:
        return _facts_of_view(self.request)


@dataclass(frozen=True)
class AdoptView(ChangeOperation):
    """A view from a metadata file anywhere below the warehouse's base; the caller owns it. See `AdoptTable`."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/register-view"
    namespace: InPath[NamespaceRef]
    request: InBody[RegisterViewRequest]

    def demands(self) -> tuple[Demand, ...]:
        return Demand(Can.CREATE_VIEW, self.namespace), _manages_storage(self.namespace)

    def facts(self) -> Facts:
        return _facts_of_view(self.request)


def _demands_of_table(namespace: NamespaceRef, request: RegisterTableRequest, table: TableRef) -> tuple[Demand, ...]:
    creates = Demand(Can.CREATE_TABLE, namespace)
    if not request.overwrite:
        return (creates,)
    # Whether a refusal to overwrite may be told as one, or as a name that is taken.
    return creates, Demand(Can.GET_METADATA, table, required=False)


def _facts_of_table(request: RegisterTableRequest) -> Facts:
    return {
        "table": request.name,
        "overwrite": request.overwrite,
        "metadata_location": request.metadata_location,
    }


def _facts_of_view(request: RegisterViewRequest) -> Facts:
    return {"view": request.name, "metadata_location": request.metadata_location}
