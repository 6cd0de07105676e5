# SPDX-License-Identifier: Apache-2.0
"""Endpoints for grants on single columns of a table."""

from __future__ import annotations

from dataclasses import replace

from litestar import Response

from gateway.access.operations.column_grants import (
    ChangeColumnGrants,
    ListColumnGrantHistory,
    ListColumnGrants,
    ListTableColumnGrants,
    ReadColumnAssignments,
    WriteColumnAssignments,
)
from gateway.access.refs import ObjectType
from gateway.access.request import Body, Query
from gateway.api.answers import changed_grants
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.governance.grant_lists import GrantLists
from gateway.governance.grant_requests import parse_entries, parse_grants, parse_privileges, require_writable
from gateway.protocol.grants import AssignmentsAnswer, WriteAssignmentsRequest, WriteGrantsRequest


@serves(ReadColumnAssignments, reads=(Query("relations"),))
async def read_column_assignments(ctx: Ctx) -> AssignmentsAnswer:
    """Return the assignments on a column, with all privileges or those in the query parameter `relations`."""
    privileges = parse_privileges(ObjectType.COLUMN, ctx.queries("relations"))
    operation = await ctx.read(ReadColumnAssignments, privileges=privileges)
    return await ctx.services.grants.read(await ctx.admit(operation))


@serves(WriteColumnAssignments, reads=(Body(WriteAssignmentsRequest),))
async def write_column_assignments(ctx: Ctx) -> Response[None]:
    """Grant and revoke privileges on a column."""
    operation = await ctx.read(WriteColumnAssignments, writes=(), deletes=())
    request = await ctx.body(WriteAssignmentsRequest)
    entries = parse_entries(request.writes), parse_entries(request.deletes)
    writes, deletes = require_writable(operation.on, *entries, kind=ObjectType.COLUMN)
    permit = await ctx.admit(replace(operation, writes=writes, deletes=deletes))
    await ctx.services.grants.write(permit)
    return changed_grants(await ctx.services.live_credentials.after_revocation(permit))


@serves(ChangeColumnGrants, reads=(Body(WriteGrantsRequest),))
async def change_column_grants(ctx: Ctx) -> Response[None]:
    """Grant and revoke privileges on a column. Other grants do not change."""
    operation = await ctx.read(ChangeColumnGrants, writes=(), deletes=())
    request = await ctx.body(WriteGrantsRequest)
    entries = parse_grants(request.writes), parse_grants(request.deletes)
    writes, deletes = require_writable(operation.on, *entries, kind=ObjectType.COLUMN)
    permit = await ctx.admit(replace(operation, writes=writes, deletes=deletes))
    await ctx.services.grants.change(permit)
    return changed_grants(await ctx.services.live_credentials.after_revocation(permit))


serve(ListColumnGrants, GrantLists.on_object)
serve(ListColumnGrantHistory, GrantLists.history)
serve(ListTableColumnGrants, GrantLists.on_columns)
