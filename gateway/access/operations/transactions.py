# SPDX-License-Identifier: Apache-2.0
"""Operations that commit to several tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from uuid import UUID

from gateway.access.change_event import EventDeclaration, EventPerPart
from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation
from gateway.access.operations.tables import CommitTable, CommitTableCreation
from gateway.access.refs import NamespaceRef, Table, TabularRef
from gateway.access.request import InBody, Path
from gateway.iceberg.errors import (
    BadRequestException,
    TableIdentifierRequiredForCommitTransaction,
    TableIdentifiersNotUnique,
)
from gateway.iceberg.requirements import AssertCreate
from gateway.iceberg.wire import CommitTableRequest, CommitTransactionRequest

MAX_TABLES = 500
"""Maximum number of tables in one transaction. Each costs two questions to OpenFGA, one to OPA and a file."""


@dataclass(frozen=True)
class CommitTransaction(ChangeOperation):
    """Commit to several tables, all or none.

    Each commit is decided as if it was requested alone, so a transaction cannot circumvent a refusal.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/transactions/commit"
    event: ClassVar[EventDeclaration] = EventPerPart()
    returns: ClassVar[int] = 204
    warehouse_id: Annotated[UUID, Path("prefix")]
    request: InBody[CommitTransactionRequest]

    def __post_init__(self) -> None:
        """Raise BadRequestException for an empty or too large transaction.

        Raises TableIdentifierRequiredForCommitTransaction for a change without a table, and TableIdentifiersNotUnique
        for two changes of one table. The status of each is 400.
        """
        changes = self.request.table_changes
        if not 0 < len(changes) <= MAX_TABLES:
            raise BadRequestException(f"A transaction must change 1 to {MAX_TABLES} tables, not {len(changes)}.")
        seen: set[str] = set()
        for number, change in enumerate(changes):
            if change.identifier is None:
                raise TableIdentifierRequiredForCommitTransaction(
                    f"`table-changes[{number}]` has no `identifier`; it must name a table."
                )
            key = change.identifier.key
            if key in seen:
                raise TableIdentifiersNotUnique(
                    f"The transaction contains two changes of table {change.identifier.dotted}; combine them into one."
                )
            seen.add(key)

    def parts(self) -> tuple[CommitTable | CommitTableCreation, ...]:
        """Return the commits, in the order of the request."""
        return tuple(self._part(change) for change in self.request.table_changes)

    def _part(self, change: CommitTableRequest) -> CommitTable | CommitTableCreation:
        if change.identifier is None:
            raise TableIdentifierRequiredForCommitTransaction(
                "A change of the transaction has no `identifier`; it must name a table."
            )
        identifier = change.identifier.identifier
        if any(isinstance(requirement, AssertCreate) for requirement in change.requirements):
            namespace = NamespaceRef(self.warehouse_id, identifier.namespace)
            return CommitTableCreation(namespace, identifier.name, change)
        return CommitTable(TabularRef(Table, self.warehouse_id, identifier), change)

    def demands(self) -> tuple[Demand, ...]:
        return tuple(dict.fromkeys(demand for part in self.parts() for demand in part.demands()))

    def facts(self) -> Facts:
        return {"tables": len(self.request.table_changes)}
