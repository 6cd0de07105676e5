# SPDX-License-Identifier: Apache-2.0
"""Operations on tables in the catalog protocol, commits to several tables, and renames of tables and views.

Operations on credentials are in `credentials.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar
from uuid import UUID

from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventData, EventDeclaration, EventPerPart, NoEvent
from gateway.access.nouns.refs import GenericTableRef, NamespaceRef, Table, TableRef, TabularRef, ViewRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.request import Body, InBody, InPath, PageSize, PageToken, Path, Query
from gateway.iceberg.errors import (
    BadRequestException,
    TableIdentifierRequiredForCommitTransaction,
    TableIdentifiersNotUnique,
)
from gateway.iceberg.excerpts import SnapshotsMode
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.kinds import appends_to_main, target_refs, update_kinds
from gateway.iceberg.requirements import AssertCreate
from gateway.iceberg.updates import RemoveProperties, SetProperties
from gateway.iceberg.wire import (
    CommitTableRequest,
    CommitTransactionRequest,
    CommitViewRequest,
    CreateTableRequest,
    RenameRequest,
    ReportMetricsRequest,
    ScanReport,
    TableIdentifierBody,
)
from gateway.obligations.application import EnforcementPoint


@dataclass(frozen=True)
class ListTables(ReadOperation):
    """List the tables of a namespace that the caller sees."""

    endpoint: ClassVar[str] = "GET /catalog/v1/{prefix}/namespaces/{namespace}/tables"
    namespace: InPath[NamespaceRef]
    page_token: PageToken = None
    page_size: PageSize = None
    return_uuids: Annotated[bool, Query("returnUuids")] = False
    return_protection_status: Annotated[bool, Query("returnProtectionStatus")] = False

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.LIST_TABLES, self.namespace),
            Demand(Can.LIST_EVERYTHING, self.namespace, required=False),
        )


@dataclass(frozen=True)
class CreateTable(ChangeOperation):
    """Create a table, or stage it for a later commit. The creator owns it."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables"
    event: ClassVar[EventDeclaration] = ChangeEvent(
        on="namespace", new="table_id", named="request.name", data=EventData.BODY
    )
    namespace: InPath[NamespaceRef]
    request: InBody[CreateTableRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_TABLE, self.namespace),)

    def facts(self) -> Facts:
        return {
            "table": self.request.name,
            "staged": bool(self.request.stage_create),
            "explicit_location": self.request.location is not None,
            "property_names": tuple(sorted(self.request.properties or {})),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """Options of the client for loading a table: the snapshots, the credentials, and the version that the client has.

    With `client_managed` no credentials are vended, because the client manages them. `known` are the ETags of
    `If-None-Match`, None for `*`.
    """

    snapshots: SnapshotsMode = SnapshotsMode.ALL
    client_managed: bool = False
    known: tuple[str, ...] | None = ()


@dataclass(frozen=True)
class LoadTable(ReadOperation):
    """Load a table's metadata. Vending is another operation: a permit for this one cannot vend credentials.

    The door also decides whether the caller may read data, because only readers receive the address of the storage. A
    column grantee loads the table through an engine that enforces the restriction, and the answer names the other
    columns.
    """

    endpoint: ClassVar[str] = "GET /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.LOAD
    table: InPath[TableRef]
    options: LoadOptions = LoadOptions()

    def demands(self) -> tuple[Demand, ...]:
        return self._demands

    # Computed once: one decision reads the demands several times, and loads are the most frequent requests.
    @cached_property
    def _demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.GET_METADATA, self.table, restricted=Can.READ_COLUMNS),
            Demand(Can.READ_DATA, self.table, required=False, restricted=Can.READ_COLUMNS),
        )


@dataclass(frozen=True)
class TableExists(ReadOperation):
    """Check that a table exists and the caller sees it."""

    endpoint: ClassVar[str] = "HEAD /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    returns: ClassVar[int] = 204
    table: InPath[TableRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.INCLUDE_IN_LIST, self.table),)


@dataclass(frozen=True)
class CommitTable(ChangeOperation):
    """Commit updates to a table. Policies receive the kinds of the updates."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="table", type="updateTable", data=EventData.BODY)
    enforcement_point: ClassVar[EnforcementPoint | None] = EnforcementPoint.WRITE
    table: InPath[TableRef]
    request: InBody[CommitTableRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.COMMIT, self.table),)

    def enforced_at(self) -> EnforcementPoint | None:
        # A data policy may allow callers that it restricts to append rows.
        appends = appends_to_main(self.request.updates, self.request.requirements)
        return EnforcementPoint.APPEND if appends else EnforcementPoint.WRITE

    def facts(self) -> Facts:
        return commit_facts(self.request)


@dataclass(frozen=True)
class CommitTableCreation(ChangeOperation):
    """Commit the creation of a staged table (`assert-create`). The right to create it is checked again."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    event: ClassVar[EventDeclaration] = ChangeEvent(
        on="namespace", new="table_id", named="table", type="updateTable", data=EventData.BODY
    )
    namespace: InPath[NamespaceRef]
    table: InPath[str]
    request: InBody[CommitTableRequest]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.CREATE_TABLE, self.namespace),)

    def facts(self) -> Facts:
        return {"table": self.table, **commit_facts(self.request)}


@dataclass(frozen=True)
class ReportMetrics(ChangeOperation):
    """Report the metrics of a scan or a commit. The caller needs the right to read the table, or to write it."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics"
    event: ClassVar[EventDeclaration] = NoEvent("a report about a scan or commit changes no object")
    returns: ClassVar[int] = 204
    # Refused for good and not with a 429: Java clients wait for the response, and for the retry delay of a 429, before
    # they return the first row of a scan.
    refused_for_good: ClassVar[str] = "it does not store metrics reports"
    table: InPath[TableRef]
    report: InBody[ReportMetricsRequest]

    def demands(self) -> tuple[Demand, ...]:
        scanned = isinstance(self.report, ScanReport)
        return (Demand(Can.READ_DATA if scanned else Can.WRITE_DATA, self.table),)

    def facts(self) -> Facts:
        return {"report_type": "scan-report" if isinstance(self.report, ScanReport) else "commit-report"}


@dataclass(frozen=True)
class DropTable(ChangeOperation):
    """Drop a table.

    `purge` determines whether its files are deleted; without it the warehouse does. `force` overrides the table's
    protection and the warehouse's soft deletion.
    """

    endpoint: ClassVar[str] = "DELETE /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="table", data=EventData.NOTHING)
    returns: ClassVar[int] = 204
    table: InPath[TableRef]
    purge: Annotated[bool | None, Query("purgeRequested")] = None
    force: Annotated[bool, Query("force")] = False

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.DROP, self.table),)

    def facts(self) -> Facts:
        return {"purge": self.purge is not False, "force": self.force}


def commit_facts(request: CommitTableRequest | CommitViewRequest) -> Facts:
    """Return the facts of a commit for policies: the kinds of its updates, the changed properties, and the changed
    refs.
    """
    return {
        "update_kinds": tuple(sorted(kind.value for kind in update_kinds(request.updates))),
        "updated_properties": tuple(
            sorted({name for each in request.updates if isinstance(each, SetProperties) for name in each.updates})
        ),
        "removed_properties": tuple(
            sorted({name for each in request.updates if isinstance(each, RemoveProperties) for name in each.removals})
        ),
        "target_refs": tuple(sorted(target_refs(request.updates))),
    }


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
        """Raise BadRequestException for a transaction without commits, or with too many.

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


@dataclass(frozen=True)
class RenameTable(ChangeOperation):
    """Rename a table, or move it to another namespace of the same warehouse.

    A new name in the same namespace needs `can_rename`. A move needs `can_move`, because the rights on the new
    namespace then apply to the table, and the right to create tables there.
    """

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/tables/rename"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="source", data=EventData.BODY)
    returns: ClassVar[int] = 204
    source: Annotated[TableRef, Body(RenameRequest, "source.identifier")]
    destination: Annotated[TableIdentifier, Body(RenameRequest, "destination.identifier")]

    def demands(self) -> tuple[Demand, ...]:
        return rename_demands(self.source, self.destination, Can.CREATE_TABLE)

    def event_body(self) -> RenameRequest:
        return rename_body(self.source, self.destination)

    def facts(self) -> Facts:
        return _destination_facts(self.destination)


@dataclass(frozen=True)
class RenameView(ChangeOperation):
    """Rename or move a view, by the rules of `RenameTable`."""

    endpoint: ClassVar[str] = "POST /catalog/v1/{prefix}/views/rename"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="source", data=EventData.NOTHING)
    returns: ClassVar[int] = 204
    source: Annotated[ViewRef, Body(RenameRequest, "source.identifier")]
    destination: Annotated[TableIdentifier, Body(RenameRequest, "destination.identifier")]

    def demands(self) -> tuple[Demand, ...]:
        return rename_demands(self.source, self.destination, Can.CREATE_VIEW)

    def facts(self) -> Facts:
        return _destination_facts(self.destination)


def destination_namespace(
    source: TableRef | ViewRef | GenericTableRef, destination: TableIdentifier
) -> NamespaceRef | None:
    """Return the namespace of `destination`. Return None if `source` is in the same namespace.

    Namespaces are compared by the case-folded key that identifies their rows, not by their spelling.
    """
    if destination.namespace.key == source.identifier.namespace.key:
        return None
    return NamespaceRef(source.warehouse_id, destination.namespace)


def rename_body(source: TableRef | ViewRef | GenericTableRef, destination: TableIdentifier) -> RenameRequest:
    """Return the body of the rename request, for the event."""
    return RenameRequest(
        source=TableIdentifierBody.of(source.identifier), destination=TableIdentifierBody.of(destination)
    )


def rename_demands(
    source: TableRef | ViewRef | GenericTableRef, destination: TableIdentifier, create: Can
) -> tuple[Demand, ...]:
    """Return the demands of a rename. `create` is the right to create such an object in the destination namespace."""
    at = destination_namespace(source, destination)
    return (Demand(Can.RENAME, source),) if at is None else (Demand(Can.MOVE, source), Demand(create, at))


def _destination_facts(destination: TableIdentifier) -> Facts:
    return {"destination_namespace": destination.namespace.levels, "destination_name": destination.name}
