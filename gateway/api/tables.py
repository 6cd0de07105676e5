# SPDX-License-Identifier: Apache-2.0
"""Table endpoints of the catalog protocol."""

from __future__ import annotations

from gateway.access.operations.credentials import VendCreationCredentials, VendCredentials
from gateway.access.operations.tables import (
    CommitTable,
    CommitTableCreation,
    CreateTable,
    DropTable,
    ListTables,
    LoadOptions,
    LoadTable,
    ReportMetrics,
    TableExists,
)
from gateway.access.repetition import Remembered
from gateway.api.answers import CommitAnswer, TableAnswer, not_modified_or, tagged
from gateway.api.context import Ctx
from gateway.api.delegation import client_manages_storage
from gateway.api.serves import serves
from gateway.catalog import etags
from gateway.iceberg.referenced import SnapshotsMode
from gateway.iceberg.requirements import AssertCreate
from gateway.iceberg.wire import (
    CommitTableRequest,
    CreateTableRequest,
    ListTablesResponse,
    ReportMetricsRequest,
)


@serves(ListTables)
async def list_tables(ctx: Ctx, prefix: str, namespace: str) -> ListTablesResponse:
    """The tables of a namespace that the caller sees."""
    token, size = ctx.page()
    operation = ListTables(
        ctx.namespace(prefix, namespace),
        token,
        size,
        return_uuids=ctx.flag("returnUuids", False),
        return_protection_status=ctx.flag("returnProtectionStatus", False),
    )
    return await ctx.parts.tables.list(await ctx.admit(operation))


async def repeat_create(ctx: Ctx, remembered: Remembered, prefix: str, namespace: str) -> TableAnswer:
    """The table as it is now, with credentials for who may have them now; a staged one as it was staged."""
    request = await ctx.body(CreateTableRequest)
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    if request.stage_create:
        ref = ctx.namespace(prefix, namespace)
        operation = CreateTable(ref, request)
        if managed:
            return not_modified_or(await ctx.parts.tables.restage(await ctx.admit(operation), None, remembered))
        permits = await ctx.admit_with(operation, VendCreationCredentials(ref, request.name))
        return not_modified_or(await ctx.parts.tables.restage(*permits, remembered))
    return await _load(ctx, LoadTable(ctx.table(prefix, namespace, request.name), LoadOptions(client_managed=managed)))


@serves(CreateTable, VendCreationCredentials, repeat=repeat_create)
async def create_table(ctx: Ctx, prefix: str, namespace: str) -> TableAnswer:
    """Create or stage a table."""
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    request = await ctx.body(CreateTableRequest)
    ref = ctx.namespace(prefix, namespace)
    operation = CreateTable(ref, request)
    if managed:
        return not_modified_or(await ctx.parts.tables.create(await ctx.admit(operation), None))
    permits = await ctx.admit_with(operation, VendCreationCredentials(ref, request.name))
    return not_modified_or(await ctx.parts.tables.create(*permits))


@serves(LoadTable)
async def load_table(ctx: Ctx, prefix: str, namespace: str, table: str) -> TableAnswer:
    """Load a table, with credentials for those who may have them; 304 when the client has this answer already."""
    await ctx.come_through(prefix)
    options = LoadOptions(
        snapshots=SnapshotsMode.parse(ctx.query("snapshots")),
        client_managed=client_manages_storage(ctx.header("x-iceberg-access-delegation")),
        known=etags.parse_if_none_match(ctx.header("if-none-match")),
    )
    return await _load(ctx, LoadTable(ctx.table(prefix, namespace, table), options))


async def _load(ctx: Ctx, operation: LoadTable) -> TableAnswer:
    if operation.options.client_managed:
        return not_modified_or(await ctx.parts.tables.load(await ctx.admit(operation), None))
    return not_modified_or(
        await ctx.parts.tables.load(*await ctx.admit_with(operation, VendCredentials(operation.table)))
    )


@serves(TableExists)
async def table_exists(ctx: Ctx, prefix: str, namespace: str, table: str) -> None:
    """204 when it exists and is visible."""
    await ctx.parts.tables.exists(await ctx.admit(TableExists(ctx.table(prefix, namespace, table))))


async def repeat_commit(ctx: Ctx, remembered: Remembered, prefix: str, namespace: str, table: str) -> CommitAnswer:
    """The table as it is now: the commit is in it, and perhaps others are that followed."""
    permit = await ctx.admit(LoadTable(ctx.table(prefix, namespace, table)))
    state = await ctx.parts.tables.committed(permit)
    return tagged(state, etags.of_commit(permit, None, state.metadata_location))


@serves(CommitTable, CommitTableCreation, repeat=repeat_commit)
async def commit_table(ctx: Ctx, prefix: str, namespace: str, table: str) -> CommitAnswer:
    """Commit to a table, or make a staged one exist (`assert-create`)."""
    request = await ctx.body(CommitTableRequest)
    ref = ctx.table(prefix, namespace, table)
    if any(isinstance(requirement, AssertCreate) for requirement in request.requirements):
        creation = CommitTableCreation(ctx.namespace(prefix, namespace), table, request)
        creating = await ctx.admit(creation)
        made = await ctx.parts.commits.create(creating)
        return tagged(made, etags.of_commit(creating, None, made.metadata_location))
    permit = await ctx.admit(CommitTable(ref, request))
    done = await ctx.parts.commits.commit(permit)
    return tagged(done, etags.of_commit(permit, permit.table(ref).id, done.metadata_location))


@serves(DropTable)
async def drop_table(ctx: Ctx, prefix: str, namespace: str, table: str) -> None:
    """Drop a table; its files go too unless `purgeRequested=false`."""
    purge, force = ctx.flag("purgeRequested", True), ctx.flag("force", False)
    await ctx.parts.tables.drop(await ctx.admit(DropTable(ctx.table(prefix, namespace, table), purge, force)))


@serves(ReportMetrics)
async def report_metrics(ctx: Ctx, prefix: str, namespace: str, table: str) -> None:
    """Take an engine's report of a scan or a commit."""
    report: ReportMetricsRequest = await ctx.body(ReportMetricsRequest)  # type: ignore[arg-type]  # a union is no type to the checker
    await ctx.parts.reports.keep(await ctx.admit(ReportMetrics(ctx.table(prefix, namespace, table), report)))
