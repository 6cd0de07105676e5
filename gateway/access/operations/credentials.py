# SPDX-License-Identifier: Apache-2.0
"""What can be asked about storage credentials: vending keys for a table, and signing requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.operation import Durability, Operation
from gateway.access.refs import NamespaceRef, TableRef
from gateway.access.relations import Can
from gateway.access.request import InPath


@dataclass(frozen=True)
class VendCredentials(Operation):
    """Temporary keys for exactly the table's prefix: to read with `can_read_data`, to change with `can_write_data`."""

    endpoint: ClassVar[str] = "GET /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"
    durability: ClassVar[Durability] = Durability.BEFORE_ANSWER
    table: InPath[TableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.READ_DATA, self.table, restricted=Can.READ_COLUMNS),
            Demand(Can.WRITE_DATA, self.table, required=False, changes=True),
        )


@dataclass(frozen=True)
class VendCreationCredentials(Operation):
    """Keys for the table that is being created, for its creator: asked together with `CreateTable`, served by its
    endpoint.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables"
    durability: ClassVar[Durability] = Durability.WITH_CHANGE
    namespace: NamespaceRef
    table: str

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_TABLE, self.namespace),)


@dataclass(frozen=True)
class SignRequest(Operation):
    """Remote signing; not advertised, and answered with 406 until it exists. It demands already what reading demands,
    so that the 406 tells nobody which tables there are.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/sign"
    reads_because: ClassVar[str] = "it does nothing yet"
    table: InPath[TableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_DATA, self.table, restricted=Can.READ_COLUMNS),)
