# SPDX-License-Identifier: Apache-2.0
"""Lock 2, for the type checker: invalid declarations of operations and demands that it must refuse."""

from __future__ import annotations

from gateway.access.demand import Demand
from gateway.access.nouns.refs import NamespaceRef, TableRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import Operation, ReadOperation
from gateway.access.operations.tables import DropTable, LoadTable


def demands(table: TableRef) -> tuple[Demand, ...]:
    return (
        Demand(Can.DROP, table),
        Demand("can_drop", table),  # refused
        Demand(Can.DROP, "table:1"),  # refused
        Demand(Can.DROP),  # refused
        Demand(Can.FLY, table),  # refused
    )


def operations(table: TableRef, namespace: NamespaceRef) -> list[Operation]:
    return [
        LoadTable(table),
        LoadTable(namespace),  # refused
        LoadTable("sales.orders"),  # refused
        LoadTable(),  # refused
        DropTable(table, purge="yes"),  # refused
    ]


def frozen(operation: LoadTable, table: TableRef) -> None:
    operation.table = table  # refused


class Vague(ReadOperation):
    """Invalid demands."""

    endpoint = "GET /vague"

    def demands(self) -> list[str]:  # refused
        return ["can_drop"]
