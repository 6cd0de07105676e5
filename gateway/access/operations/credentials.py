# SPDX-License-Identifier: Apache-2.0
"""What can be asked about storage credentials: vending keys for a table, and signing requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.operation import ChangeOperation, QuestionOperation, VendingOperation
from gateway.access.refs import NamespaceRef, TableRef
from gateway.access.relations import Can
from gateway.access.request import InPath


@dataclass(frozen=True)
class VendCredentials(VendingOperation):
    """Temporary keys for exactly the table's prefix: to read with `can_read_data`, to change with `can_write_data`."""

    endpoint: ClassVar[str] = "GET /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"
    table: InPath[TableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.READ_DATA, self.table, restricted=Can.READ_COLUMNS),
            Demand(Can.WRITE_DATA, self.table, required=False, changes=True),
        )


@dataclass(frozen=True)
class VendCreationCredentials(ChangeOperation):
    """Keys for the table that is being created, for its creator: asked together with `CreateTable`, served by its
    endpoint.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables"
    namespace: NamespaceRef
    table: str

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_TABLE, self.namespace),)


@dataclass(frozen=True)
class SignRequest(QuestionOperation):
    """Remote signing; not advertised, and answered with 406 until it exists. It demands already what reading demands,
    so that the 406 tells nobody which tables there are.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/sign"
    # Changes nothing: it does nothing yet.
    table: InPath[TableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_DATA, self.table, restricted=Can.READ_COLUMNS),)
