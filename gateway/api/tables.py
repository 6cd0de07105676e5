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
    LoadTable,
    TableExists,
)
from gateway.api.context import Ctx
from gateway.api.delegation import client_manages_storage
from gateway.api.serves import serves
from gateway.iceberg.requirements import AssertCreate
from gateway.iceberg.wire import (
    CommitTableRequest,
    CommitTableResponse,
    CreateTableRequest,
    ListTablesResponse,
    LoadTableResult,
)


@serves(ListTables)
async def list_tables(ctx: Ctx, prefix: str, namespace: str) -> ListTablesResponse:
    """The tables of a namespace that the caller sees."""
    token, size = ctx.page()
    uuids = ctx.flag("returnUuids", False)
    operation = ListTables(ctx.namespace(prefix, namespace), token, size, return_uuids=uuids)
    return await ctx.parts.tables.list(await ctx.admit(operation))


@serves(CreateTable, VendCreationCredentials)
async def create_table(ctx: Ctx, prefix: str, namespace: str) -> LoadTableResult:
    """Create or stage a table."""
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    request = await ctx.body(CreateTableRequest)
    ref = ctx.namespace(prefix, namespace)
    operation = CreateTable(ref, request)
    if managed:
        return await ctx.parts.tables.create(await ctx.admit(operation), None)
    return await ctx.parts.tables.create(*await ctx.admit_with(operation, VendCreationCredentials(ref, request.name)))


@serves(LoadTable)
async def load_table(ctx: Ctx, prefix: str, namespace: str, table: str) -> LoadTableResult:
    """Load a table, with credentials for those who may have them."""
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    ref = ctx.table(prefix, namespace, table)
    if managed:
        return await ctx.parts.tables.load(await ctx.admit(LoadTable(ref)), None)
    return await ctx.parts.tables.load(*await ctx.admit_with(LoadTable(ref), VendCredentials(ref)))


@serves(TableExists)
async def table_exists(ctx: Ctx, prefix: str, namespace: str, table: str) -> None:
    """204 when it exists and is visible."""
    await ctx.parts.tables.exists(await ctx.admit(TableExists(ctx.table(prefix, namespace, table))))


@serves(CommitTable, CommitTableCreation)
async def commit_table(ctx: Ctx, prefix: str, namespace: str, table: str) -> CommitTableResponse:
    """Commit to a table, or make a staged one exist (`assert-create`)."""
    request = await ctx.body(CommitTableRequest)
    ref = ctx.table(prefix, namespace, table)
    if any(isinstance(requirement, AssertCreate) for requirement in request.requirements):
        creation = CommitTableCreation(ctx.namespace(prefix, namespace), table, request)
        return await ctx.parts.commits.create(await ctx.admit(creation))
    return await ctx.parts.commits.commit(await ctx.admit(CommitTable(ref, request)))


@serves(DropTable)
async def drop_table(ctx: Ctx, prefix: str, namespace: str, table: str) -> None:
    """Drop a table; its files go too unless `purgeRequested=false`."""
    purge = ctx.flag("purgeRequested", True)
    await ctx.parts.tables.drop(await ctx.admit(DropTable(ctx.table(prefix, namespace, table), purge)))
