# SPDX-License-Identifier: Apache-2.0
"""Operations that register tables and views from existing metadata files, and unregister tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventData, EventDeclaration
from gateway.access.nouns.refs import NamespaceRef, Table, TableRef, TabularRef, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation
from gateway.access.request import InBody, InPath
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.wire import RegisterTableRequest, RegisterViewRequest
from gateway.obligations.application import EnforcementPoint


def _adoption_demand(namespace: NamespaceRef) -> Demand:
    """Return the demand for adoption: the right on the storage of the warehouse."""
    return Demand(Can.ADOPT_FILES, WarehouseRef(namespace.warehouse_id))


@dataclass(frozen=True)
class RegisterTable(ChangeOperation):
    """Register a table from a metadata file at a recorded location that the caller owned.

    `overwrite` removes a table of this name without its files. This needs a second permit (`DropTable`) from the same
    round, so a refused drop also prevents the overwrite.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/register"
    event: ClassVar[EventDeclaration] = ChangeEvent(
        on="namespace", new="table_id", replaces="replaced_id", named="request.name", data=EventData.NOTHING
    )
    namespace: InPath[NamespaceRef]
    request: InBody[RegisterTableRequest]

    @property
    def table(self) -> TableRef:
        """The name of the new table."""
        return TabularRef(
            Table, self.namespace.warehouse_id, TableIdentifier(self.namespace.namespace, self.request.name)
        )

    def demands(self) -> tuple[Demand, ...]:
        return _demands_of_table(self.namespace, self.request, self.table)

    def facts(self) -> Facts:
        return _facts_of_table(self.request)


@dataclass(frozen=True)
class AdoptTable(ChangeOperation):
    """Register a table from a metadata file anywhere below the warehouse's base. The caller owns it.

    The header `X-Lakegate-Adopt: true` selects this operation, for files of other catalogs and files without a record.
    `overwrite` is as for `RegisterTable`.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/register"
    event: ClassVar[EventDeclaration] = ChangeEvent(
        on="namespace",
        new="table_id",
        replaces="replaced_id",
        named="request.name",
        type="registerTable",
        data=EventData.NOTHING,
    )
    namespace: InPath[NamespaceRef]
    request: InBody[RegisterTableRequest]

    @property
    def table(self) -> TableRef:
        """The name of the new table."""
        return TabularRef(
            Table, self.namespace.warehouse_id, TableIdentifier(self.namespace.namespace, self.request.name)
        )

    def demands(self) -> tuple[Demand, ...]:
        return (*_demands_of_table(self.namespace, self.request, self.table), _adoption_demand(self.namespace))

    def facts(self) -> Facts:
        return _facts_of_table(self.request)


@dataclass(frozen=True)
class UnregisterTable(ChangeOperation):
    """Remove a table from the catalog and keep all its files, for another registration.

    This needs ownership or `manage_grants`. `modify` allows a drop, and must not determine the next owner of the files.
    The answer contains the last metadata, so the caller also needs the right to read them. A caller that a data policy
    restricts is refused.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="table", type="dropTable", data=EventData.NOTHING)
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.UNREGISTER
    table: InPath[TableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.UNREGISTER, self.table), Demand(Can.GET_METADATA, self.table))


@dataclass(frozen=True)
class RegisterView(ChangeOperation):
    """Register a view from a metadata file at a recorded location that the caller owned."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/register-view"
    event: ClassVar[EventDeclaration] = ChangeEvent(
        on="namespace", new="view_id", named="request.name", data=EventData.NOTHING
    )
    namespace: InPath[NamespaceRef]
    request: InBody[RegisterViewRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_VIEW, self.namespace),)

    def facts(self) -> Facts:
        return _facts_of_view(self.request)


@dataclass(frozen=True)
class AdoptView(ChangeOperation):
    """Register a view from a metadata file anywhere below the base of the warehouse; see `AdoptTable`."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/register-view"
    event: ClassVar[EventDeclaration] = ChangeEvent(
        on="namespace", new="view_id", named="request.name", type="registerView", data=EventData.NOTHING
    )
    namespace: InPath[NamespaceRef]
    request: InBody[RegisterViewRequest]

    def demands(self) -> tuple[Demand, ...]:
        return Demand(Can.CREATE_VIEW, self.namespace), _adoption_demand(self.namespace)

    def facts(self) -> Facts:
        return _facts_of_view(self.request)


def _demands_of_table(namespace: NamespaceRef, request: RegisterTableRequest, table: TableRef) -> tuple[Demand, ...]:
    creates = Demand(Can.CREATE_TABLE, namespace)
    if not request.overwrite:
        return (creates,)
    # If the overwrite is refused, only callers that see the table get this as the error. Other callers only learn that
    # the name is taken.
    return creates, Demand(Can.GET_METADATA, table, required=False)


def _facts_of_table(request: RegisterTableRequest) -> Facts:
    return {
        "table": request.name,
        "overwrite": request.overwrite,
        "metadata_location": request.metadata_location,
    }


def _facts_of_view(request: RegisterViewRequest) -> Facts:
    return {"view": request.name, "metadata_location": request.metadata_location}
