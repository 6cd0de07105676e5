# SPDX-License-Identifier: Apache-2.0
"""Endpoints for tables and generic tables, transactions, renames and the search."""

from __future__ import annotations

from litestar import Response

from gateway.access.idempotency import RecordedSuccess
from gateway.access.nouns.refs import GenericTable, GenericTableRef, NamespaceRef, Table, TableRef, TabularRef
from gateway.access.operations.credentials import VendCreationCredentials, VendCredentials
from gateway.access.operations.generic_tables import (
    AdoptGenericTable,
    CreateGenericTable,
    DropGenericTable,
    GenericTableExists,
    ListGenericTables,
    LoadGenericTable,
    RenameGenericTable,
    VendGenericTableCreationCredentials,
    VendGenericTableCredentials,
)
from gateway.access.operations.search import SearchTabular
from gateway.access.operations.tables import (
    CommitTable,
    CommitTableCreation,
    CommitTransaction,
    CreateTable,
    DropTable,
    ListTables,
    LoadOptions,
    LoadTable,
    RenameTable,
    RenameView,
    ReportMetrics,
    TableExists,
)
from gateway.access.request import Header, Query
from gateway.api.answers import CommitAnswer, TableAnswer, cached_response, dropped_object, tagged
from gateway.api.binding import client_manages_storage, parse_adopt_header, prefers_signing
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.features.credentials.credentials import Credentials
from gateway.features.metadata import etags
from gateway.features.statistics.statistics import Reports
from gateway.features.tables.commits import Commits
from gateway.features.tables.generic_tables import GenericTables
from gateway.features.tables.renames import Renames
from gateway.features.tables.search import Search
from gateway.features.tables.tables import Tables
from gateway.iceberg.excerpts import SnapshotsMode
from gateway.iceberg.generic_tables import CreateGenericTableRequest, LoadGenericTableResult
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.requirements import AssertCreate
from gateway.iceberg.wire import CommitTableRequest

_DELEGATION = Header("x-iceberg-access-delegation")


async def replay_table_creation(ctx: Ctx, recorded_success: RecordedSuccess) -> TableAnswer:
    """Return the current table, or the staged table as it was staged.

    The response has credentials if the caller has the right to them now.
    """
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    operation = await ctx.read(CreateTable)
    namespace, name = operation.namespace, operation.request.name
    if operation.request.stage_create:
        keys = None if managed else VendCreationCredentials(namespace, name, _signing(ctx))
        return cached_response(
            await ctx.use(Tables).load_staged(*await ctx.admit_with(operation, keys), recorded_success)
        )
    table = TabularRef(Table, namespace.warehouse_id, TableIdentifier(namespace.namespace, name))
    load = LoadTable(table, LoadOptions(client_managed=managed))
    return cached_response(await ctx.use(Tables).load(*await ctx.admit_with(load, _keys_of(ctx, load))))


@serves(CreateTable, VendCreationCredentials, replay=replay_table_creation, reads=(_DELEGATION,))
async def create_table(ctx: Ctx) -> TableAnswer:
    """Create or stage a table."""
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    operation = await ctx.read(CreateTable)
    keys = None if managed else VendCreationCredentials(operation.namespace, operation.request.name, _signing(ctx))
    return cached_response(await ctx.use(Tables).create(*await ctx.admit_with(operation, keys)))


@serves(LoadTable, reads=(Query("snapshots"), Query("referenced-by"), _DELEGATION, Header("if-none-match")))
async def load_table(ctx: Ctx) -> TableAnswer:
    """Load a table, with credentials if the caller has the right to them; 304 if the client's ETag is current."""
    await ctx.pass_through_views()
    options = LoadOptions(
        snapshots=SnapshotsMode.parse(ctx.query("snapshots")),
        client_managed=client_manages_storage(ctx.header("x-iceberg-access-delegation")),
        known=etags.parse_if_none_match(ctx.header("if-none-match")),
    )
    operation = await ctx.read(LoadTable, options=options)
    return cached_response(await ctx.use(Tables).load(*await ctx.admit_with(operation, _keys_of(ctx, operation))))


def _keys_of(ctx: Ctx, operation: LoadTable) -> VendCredentials | None:
    """Return the operation that vends credentials for a load; None for a client with credentials of its own."""
    return None if operation.options.client_managed else VendCredentials(operation.table, _signing(ctx))


def _signing(ctx: Ctx) -> bool:
    return prefers_signing(ctx.header("x-iceberg-access-delegation"))


async def replay_commit(ctx: Ctx, recorded_success: RecordedSuccess) -> CommitAnswer:
    """Return the current table, which includes the commit and any later ones."""
    permit = await ctx.admit(LoadTable(ctx.ref(TableRef)))
    state = await ctx.use(Tables).committed(permit)
    return tagged(state, etags.commit_etag(permit, None, state.metadata_location))


@serves(CommitTable, CommitTableCreation, replay=replay_commit)
async def commit_table(ctx: Ctx) -> CommitAnswer:
    """Commit to a table, or create a staged table (requirement `assert-create`)."""
    request = await ctx.body(CommitTableRequest)
    if any(isinstance(requirement, AssertCreate) for requirement in request.requirements):
        creating = await ctx.admit(await ctx.read(CommitTableCreation))
        made = await ctx.use(Commits).create(creating)
        return tagged(made, etags.commit_etag(creating, None, made.metadata_location))
    permit = await ctx.admit(await ctx.read(CommitTable))
    done = await ctx.use(Commits).commit(permit)
    return tagged(done, etags.commit_etag(permit, permit.table(permit.operation.table).id, done.metadata_location))


serve(ListTables, Tables.list)
serve(TableExists, Tables.exists)
serve(ReportMetrics, Reports.store)


@serves(DropTable)
async def drop_table(ctx: Ctx) -> Response[None]:
    """Drop a table. A header states what happens to its files."""
    return dropped_object(await ctx.use(Tables).drop(await ctx.admit(await ctx.read(DropTable))))


serve(CommitTransaction, Commits.transaction)


serve(RenameTable, Renames.table)
serve(RenameView, Renames.view)


serve(SearchTabular, Search.tabulars)


async def replay_generic_table_creation(ctx: Ctx, recorded_success: RecordedSuccess) -> LoadGenericTableResult:
    """Return the current generic table, with credentials if the caller has the right to them now."""
    namespace, name = ctx.ref(NamespaceRef), (await ctx.body(CreateGenericTableRequest)).name
    ref = TabularRef(GenericTable, namespace.warehouse_id, TableIdentifier(namespace.namespace, name))
    # Like the creation, this succeeds without credentials if data policies restrict the creator.
    return await _load(ctx, LoadGenericTable(ref, credentials=False))


@serves(
    CreateGenericTable,
    AdoptGenericTable,
    VendGenericTableCreationCredentials,
    replay=replay_generic_table_creation,
    reads=(_DELEGATION, Header("x-lakegate-adopt")),
)
async def create_generic_table(ctx: Ctx) -> LoadGenericTableResult:
    """Create a generic table.

    A given location must be empty. With the header `X-Lakegate-Adopt: true` it may contain files, which then belong to
    the table. That requires `manage_storage`.
    """
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    adopted = parse_adopt_header(ctx.header("x-lakegate-adopt"))
    kind: type[AdoptGenericTable | CreateGenericTable] = AdoptGenericTable if adopted else CreateGenericTable
    operation = await ctx.read(kind)
    keys = None if managed else VendGenericTableCreationCredentials(operation.namespace, operation.request.name)
    return await ctx.use(GenericTables).create(*await ctx.admit_with(operation, keys))


@serves(LoadGenericTable, reads=(_DELEGATION,))
async def load_generic_table(ctx: Ctx) -> LoadGenericTableResult:
    """Load a generic table, with credentials if the caller has the right to them.

    A caller that a data policy restricts gets 403, or with `client-managed` the description without statistics.
    """
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    return await _load(ctx, LoadGenericTable(ctx.ref(GenericTableRef), credentials=not managed))


async def _load(ctx: Ctx, operation: LoadGenericTable) -> LoadGenericTableResult:
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    keys = None if managed else VendGenericTableCredentials(operation.table)
    return await ctx.use(GenericTables).load(*await ctx.admit_with(operation, keys))


serve(ListGenericTables, GenericTables.list)
serve(GenericTableExists, GenericTables.exists)
serve(VendGenericTableCredentials, Credentials.vend_generic_table)
serve(RenameGenericTable, Renames.generic_table)


@serves(DropGenericTable)
async def drop_generic_table(ctx: Ctx) -> Response[None]:
    """Drop a generic table. A header states what happens to its files."""
    return dropped_object(await ctx.use(GenericTables).drop(await ctx.admit(await ctx.read(DropGenericTable))))
