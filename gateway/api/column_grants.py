# SPDX-License-Identifier: Apache-2.0
"""Endpoints about grants on single columns of a table."""

from __future__ import annotations

from gateway.access.operations.column_grants import (
    ChangeColumnGrants,
    ListColumnGrantHistory,
    ListColumnGrants,
    ListTableColumnGrants,
    ReadColumnAssignments,
    WriteColumnAssignments,
)
from gateway.access.refs import ObjectType
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.governance.grant_requests import parse_entries, parse_grants, parse_privileges, require_writable
from gateway.protocol.grants import (
    AssignmentsAnswer,
    GrantHistory,
    GrantList,
    WriteAssignmentsRequest,
    WriteGrantsRequest,
)


@serves(ReadColumnAssignments)
async def read_column_assignments(ctx: Ctx, column: str) -> AssignmentsAnswer:
    """Who holds what on a column."""
    privileges = parse_privileges(ObjectType.COLUMN, ctx.queries("relations"))
    operation = ReadColumnAssignments(targets.kept_table(ctx), column, privileges)
    return await ctx.parts.grants.read(await ctx.admit(operation))


@serves(WriteColumnAssignments)
async def write_column_assignments(ctx: Ctx, column: str) -> None:
    """Give and take privileges on a column."""
    on, request = targets.kept_table(ctx), await ctx.body(WriteAssignmentsRequest)
    entries = parse_entries(request.writes), parse_entries(request.deletes)
    change = require_writable(on, *entries, kind=ObjectType.COLUMN)
    await ctx.parts.grants.write(await ctx.admit(WriteColumnAssignments(on, *change, column)))


@serves(ChangeColumnGrants)
async def change_column_grants(ctx: Ctx, column: str) -> None:
    """Give and take privileges on a column; what is so already stays so."""
    on, request = targets.kept_table(ctx), await ctx.body(WriteGrantsRequest)
    entries = parse_grants(request.writes), parse_grants(request.deletes)
    change = require_writable(on, *entries, kind=ObjectType.COLUMN)
    await ctx.parts.grants.change(await ctx.admit(ChangeColumnGrants(on, *change, column)))


@serves(ListColumnGrants)
async def list_column_grants(ctx: Ctx, column: str) -> GrantList:
    """The live grants on a column."""
    token, size = ctx.page()
    operation = ListColumnGrants(on=targets.kept_table(ctx), column=column, page_token=token, page_size=size)
    return await ctx.parts.grant_lists.on_object(await ctx.admit(operation))


@serves(ListColumnGrantHistory)
async def list_column_grant_history(ctx: Ctx, column: str) -> GrantHistory:
    """The grants on a column that ended."""
    token, size = ctx.page()
    operation = ListColumnGrantHistory(on=targets.kept_table(ctx), column=column, page_token=token, page_size=size)
    return await ctx.parts.grant_lists.history(await ctx.admit(operation))


@serves(ListTableColumnGrants)
async def list_table_column_grants(ctx: Ctx) -> GrantList:
    """The live grants on all columns of a table."""
    token, size = ctx.page()
    operation = ListTableColumnGrants(on=targets.kept_table(ctx), page_token=token, page_size=size)
    return await ctx.parts.grant_lists.on_columns(await ctx.admit(operation))
