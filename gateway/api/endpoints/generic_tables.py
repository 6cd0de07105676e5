# SPDX-License-Identifier: Apache-2.0
"""Generic table endpoints, at the paths of Lakekeeper."""

from __future__ import annotations

from litestar import Response

from gateway.access.idempotency import RecordedSuccess
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
from gateway.access.refs import GenericTable, GenericTableRef, NamespaceRef, TabularRef
from gateway.access.request import Header
from gateway.api.answers import dropped_object
from gateway.api.context import Ctx
from gateway.api.header_values import client_manages_storage, parse_adopt_header
from gateway.api.serves import serve, serves
from gateway.catalog.credentials import Credentials
from gateway.catalog.generic_tables import GenericTables
from gateway.catalog.renames import Renames
from gateway.iceberg.generic_tables import CreateGenericTableRequest, LoadGenericTableResult
from gateway.iceberg.identifiers import TableIdentifier

_DELEGATION = Header("x-iceberg-access-delegation")


async def replay_create(ctx: Ctx, recorded_success: RecordedSuccess) -> LoadGenericTableResult:
    """Return the current generic table, with credentials if the caller has the right to them now."""
    namespace, name = ctx.ref(NamespaceRef), (await ctx.body(CreateGenericTableRequest)).name
    ref = TabularRef(GenericTable, namespace.warehouse_id, TableIdentifier(namespace.namespace, name))
    # Like the creation, it succeeds without credentials for a creator that data policies restrict.
    return await _load(ctx, LoadGenericTable(ref, credentials=False))


@serves(
    CreateGenericTable,
    AdoptGenericTable,
    VendGenericTableCreationCredentials,
    replay=replay_create,
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
    return await ctx.services.generic_tables.create(*await ctx.admit_with(operation, keys))


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
    return await ctx.services.generic_tables.load(*await ctx.admit_with(operation, keys))


serve(ListGenericTables, GenericTables.list)
serve(GenericTableExists, GenericTables.exists)
serve(VendGenericTableCredentials, Credentials.vend_generic_table)
serve(RenameGenericTable, Renames.generic_table)


@serves(DropGenericTable)
async def drop_generic_table(ctx: Ctx) -> Response[None]:
    """Drop a generic table. A header states what happens to its files."""
    return dropped_object(await ctx.services.generic_tables.drop(await ctx.admit(await ctx.read(DropGenericTable))))
