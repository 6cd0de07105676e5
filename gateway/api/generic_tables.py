# SPDX-License-Identifier: Apache-2.0
"""Generic table endpoints, at the reference system's paths."""

from __future__ import annotations

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
from gateway.access.refs import GenericTableRef
from gateway.access.repetition import Remembered
from gateway.api.adoption import adopts
from gateway.api.context import Ctx
from gateway.api.delegation import client_manages_storage
from gateway.api.serves import serves
from gateway.iceberg.generic_tables import (
    CreateGenericTableRequest,
    ListGenericTablesResponse,
    LoadGenericTableResult,
    RenameGenericTableRequest,
)
from gateway.iceberg.wire import LoadCredentialsResponse


@serves(ListGenericTables)
async def list_generic_tables(ctx: Ctx, prefix: str, namespace: str) -> ListGenericTablesResponse:
    """The generic tables of a namespace that the caller sees."""
    token, size = ctx.page()
    protection = ctx.flag("returnProtectionStatus", False)
    operation = ListGenericTables(ctx.namespace(prefix, namespace), token, size, return_protection_status=protection)
    return await ctx.parts.generic_tables.list(await ctx.admit(operation))


async def repeat_create(ctx: Ctx, remembered: Remembered, prefix: str, namespace: str) -> LoadGenericTableResult:
    """The generic table as it is now, with credentials for who may have them now."""
    name = (await ctx.body(CreateGenericTableRequest)).name
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    return await _load(ctx, ctx.generic_table(prefix, namespace, name), managed)


@serves(CreateGenericTable, AdoptGenericTable, VendGenericTableCreationCredentials, repeat=repeat_create)
async def create_generic_table(ctx: Ctx, prefix: str, namespace: str) -> LoadGenericTableResult:
    """Create a generic table.

    A location has to be empty. With the header `X-Lakegate-Adopt: true` it may hold files, which are the table's from
    then on; that takes `manage_storage`.
    """
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    request = await ctx.body(CreateGenericTableRequest)
    ref = ctx.namespace(prefix, namespace)
    kind = AdoptGenericTable if adopts(ctx.header("x-lakegate-adopt")) else CreateGenericTable
    operation = kind(ref, request)
    if managed:
        return await ctx.parts.generic_tables.create(await ctx.admit(operation), None)
    permits = await ctx.admit_with(operation, VendGenericTableCreationCredentials(ref, request.name))
    return await ctx.parts.generic_tables.create(*permits)


@serves(LoadGenericTable)
async def load_generic_table(ctx: Ctx, prefix: str, namespace: str, table: str) -> LoadGenericTableResult:
    """Load a generic table, with credentials for those who may have them."""
    managed = client_manages_storage(ctx.header("x-iceberg-access-delegation"))
    return await _load(ctx, ctx.generic_table(prefix, namespace, table), managed)


async def _load(ctx: Ctx, ref: GenericTableRef, managed: bool) -> LoadGenericTableResult:
    if managed:
        return await ctx.parts.generic_tables.load(await ctx.admit(LoadGenericTable(ref)), None)
    permits = await ctx.admit_with(LoadGenericTable(ref), VendGenericTableCredentials(ref))
    return await ctx.parts.generic_tables.load(*permits)


@serves(GenericTableExists)
async def generic_table_exists(ctx: Ctx, prefix: str, namespace: str, table: str) -> None:
    """204 when it exists and is visible."""
    permit = await ctx.admit(GenericTableExists(ctx.generic_table(prefix, namespace, table)))
    await ctx.parts.generic_tables.exists(permit)


@serves(VendGenericTableCredentials)
async def vend_generic_table_credentials(ctx: Ctx, prefix: str, namespace: str, table: str) -> LoadCredentialsResponse:
    """Fresh credentials for a generic table."""
    permit = await ctx.admit(VendGenericTableCredentials(ctx.generic_table(prefix, namespace, table)))
    return await ctx.parts.credentials.vend_generic_table(permit)


@serves(DropGenericTable)
async def drop_generic_table(ctx: Ctx, prefix: str, namespace: str, table: str) -> None:
    """Drop a generic table; its files go too unless it took them in, or as `purgeRequested` says."""
    purge = None if ctx.query("purgeRequested") is None else ctx.flag("purgeRequested", True)
    operation = DropGenericTable(ctx.generic_table(prefix, namespace, table), purge, ctx.flag("force", False))
    permit = await ctx.admit(operation)
    await ctx.parts.generic_tables.drop(permit)


@serves(RenameGenericTable)
async def rename_generic_table(ctx: Ctx, prefix: str) -> None:
    """Rename a generic table, into another namespace too."""
    request = await ctx.body(RenameGenericTableRequest)
    source = GenericTableRef(ctx.warehouse(prefix).warehouse_id, request.source.identifier)
    permit = await ctx.admit(RenameGenericTable(source, request.destination.identifier))
    await ctx.parts.renames.generic_table(permit)
