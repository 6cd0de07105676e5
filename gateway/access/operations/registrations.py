# SPDX-License-Identifier: Apache-2.0
"""What can be asked about tables and views whose metadata files exist already: taking them in and letting them go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.operation import Durability, Operation
from gateway.access.refs import NamespaceRef, TableRef, WarehouseRef
from gateway.access.relations import Can
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.wire import RegisterTableRequest, RegisterViewRequest


def _leftovers_of_others(namespace: NamespaceRef) -> Demand:
    """Whether files of a table or view that somebody else gave up may be taken in: whoever registers them owns them."""
    return Demand(Can.UPDATE_STORAGE, WarehouseRef(namespace.warehouse_id), required=False)


@dataclass(frozen=True)
class RegisterTable(Operation):
    """A table from a metadata file; who registers it owns it.

    With `overwrite` a table of this name goes, without its files. That takes a permit of its own (`DropTable`), asked
    in the same round, so that whatever keeps somebody from dropping the table keeps it from being overwritten.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/register"
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    namespace: NamespaceRef
    request: RegisterTableRequest

    @property
    def table(self) -> TableRef:
        """The name the table is to have."""
        return TableRef(self.namespace.warehouse_id, TableIdentifier(self.namespace.namespace, self.request.name))

    def demands(self) -> tuple[Demand, ...]:
        demands = (Demand(Can.CREATE_TABLE, self.namespace), _leftovers_of_others(self.namespace))
        if not self.request.overwrite:
            return demands
        # Whether a refusal to overwrite may be told as one, or as a name that is taken.
        return *demands, Demand(Can.GET_METADATA, self.table, required=False)

    def facts(self) -> Facts:
        return {
            "table": self.request.name,
            "overwrite": self.request.overwrite,
            "metadata_location": self.request.metadata_location,
        }


@dataclass(frozen=True)
class UnregisterTable(Operation):
    """A table goes and leaves all its files."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister"
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    table: TableRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.DROP, self.table),)


@dataclass(frozen=True)
class RegisterView(Operation):
    """A view from a metadata file; who registers it owns it."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/register-view"
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    namespace: NamespaceRef
    request: RegisterViewRequest

    def demands(self) -> tuple[Demand, ...]:
        return Demand(Can.CREATE_VIEW, self.namespace), _leftovers_of_others(self.namespace)

    def facts(self) -> Facts:
        return {"view": self.request.name, "metadata_location": self.request.metadata_location}
