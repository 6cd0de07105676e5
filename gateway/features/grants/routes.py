# SPDX-License-Identifier: Apache-2.0
"""Endpoints for grants, managed access, and checks of permissions.

Managed access removes the right to grant from owners of objects.
"""

from __future__ import annotations

from dataclasses import replace

from litestar import Response

from gateway.access.nouns.refs import ObjectType
from gateway.access.operations.actions import QUERY_ACTIONS, QUERY_RIGHTS, GetUserActions
from gateway.access.operations.checks import (
    BatchCheck,
    BatchCheckAnswer,
    BatchCheckRequest,
    CheckAnswer,
    CheckPermission,
    CheckRequest,
)
from gateway.access.operations.grant_lists import (
    CHANGE_GRANTS,
    LIST_GRANT_HISTORY,
    LIST_GRANTS,
    LIST_PRIVILEGES,
    ChangeColumnGrants,
    ChangeGrants,
    ListAllPrivileges,
    ListColumnGrantHistory,
    ListColumnGrants,
    ListPrincipalGrants,
    ListTableColumnGrants,
    ReadColumnAssignments,
    WriteColumnAssignments,
)
from gateway.access.operations.grants import (
    READ_ASSIGNMENTS,
    WRITE_ASSIGNMENTS,
    AssignmentsAnswer,
    ReadAssignments,
    WriteAssignments,
    WriteAssignmentsRequest,
    WriteGrantsRequest,
)
from gateway.access.operations.namespaces import GET_PERMISSIONS, SET_MANAGED_ACCESS
from gateway.access.request import Body, Query
from gateway.api.answers import changed_grants
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.features.grants.check_requests import add_unknown, parse_batch, parse_check
from gateway.features.grants.checks import Checks
from gateway.features.grants.grant_lists import GrantLists
from gateway.features.grants.grant_requests import parse_entries, parse_grants, parse_privileges, require_writable
from gateway.features.grants.grants import Grants
from gateway.features.grants.managed_access import ManagedAccess
from gateway.features.grants.rights import Rights
from gateway.features.live_credentials.live_credentials import LiveCredentials


def _serve_reading(operation: type[ReadAssignments]) -> None:
    @serves(operation, reads=(Query("relations"),))
    async def read(ctx: Ctx) -> AssignmentsAnswer:
        unbound = await ctx.read(operation)
        privileges = parse_privileges(unbound.on.type, ctx.queries("relations"))
        return await ctx.use(Grants).read(await ctx.admit(replace(unbound, privileges=privileges)))


def _serve_writing(operation: type[WriteAssignments]) -> None:
    @serves(operation, reads=(Body(WriteAssignmentsRequest),))
    async def write(ctx: Ctx) -> Response[None]:
        unbound = await ctx.read(operation, writes=(), deletes=())
        request = await ctx.body(WriteAssignmentsRequest)
        writes, deletes = require_writable(unbound.on, parse_entries(request.writes), parse_entries(request.deletes))
        permit = await ctx.admit(replace(unbound, writes=writes, deletes=deletes))
        await ctx.use(Grants).write(permit)
        exempts = await ctx.use(Grants).exempts_caller(permit)
        return changed_grants(await ctx.use(LiveCredentials).after_revocation(permit), exempts_caller=exempts)


for reading in READ_ASSIGNMENTS:
    _serve_reading(reading)
for writing in WRITE_ASSIGNMENTS:
    _serve_writing(writing)


def _serve_changing(operation: type[ChangeGrants]) -> None:
    @serves(operation, reads=(Body(WriteGrantsRequest),))
    async def change(ctx: Ctx) -> Response[None]:
        unbound = await ctx.read(operation, writes=(), deletes=())
        request = await ctx.body(WriteGrantsRequest)
        writes, deletes = require_writable(unbound.on, parse_grants(request.writes), parse_grants(request.deletes))
        permit = await ctx.admit(replace(unbound, writes=writes, deletes=deletes))
        await ctx.use(Grants).change(permit)
        exempts = await ctx.use(Grants).exempts_caller(permit)
        return changed_grants(await ctx.use(LiveCredentials).after_revocation(permit), exempts_caller=exempts)


serve(ListPrincipalGrants, GrantLists.of_principal)
serve(ListAllPrivileges, GrantLists.all_privileges)
for listing in LIST_GRANTS:
    serve(listing, GrantLists.on_object)
for ended in LIST_GRANT_HISTORY:
    serve(ended, GrantLists.history)
for privileges in LIST_PRIVILEGES:
    serve(privileges, GrantLists.grantable)
for changing in CHANGE_GRANTS:
    _serve_changing(changing)


@serves(ReadColumnAssignments, reads=(Query("relations"),))
async def read_column_assignments(ctx: Ctx) -> AssignmentsAnswer:
    """Return the assignments on a column, with all privileges or those in the query parameter `relations`."""
    privileges = parse_privileges(ObjectType.COLUMN, ctx.queries("relations"))
    operation = await ctx.read(ReadColumnAssignments, privileges=privileges)
    return await ctx.use(Grants).read(await ctx.admit(operation))


@serves(WriteColumnAssignments, reads=(Body(WriteAssignmentsRequest),))
async def write_column_assignments(ctx: Ctx) -> Response[None]:
    """Grant and revoke privileges on a column."""
    operation = await ctx.read(WriteColumnAssignments, writes=(), deletes=())
    request = await ctx.body(WriteAssignmentsRequest)
    entries = parse_entries(request.writes), parse_entries(request.deletes)
    writes, deletes = require_writable(operation.on, *entries, kind=ObjectType.COLUMN)
    permit = await ctx.admit(replace(operation, writes=writes, deletes=deletes))
    await ctx.use(Grants).write(permit)
    return changed_grants(await ctx.use(LiveCredentials).after_revocation(permit))


@serves(ChangeColumnGrants, reads=(Body(WriteGrantsRequest),))
async def change_column_grants(ctx: Ctx) -> Response[None]:
    """Grant and revoke privileges on a column. Other grants do not change."""
    operation = await ctx.read(ChangeColumnGrants, writes=(), deletes=())
    request = await ctx.body(WriteGrantsRequest)
    entries = parse_grants(request.writes), parse_grants(request.deletes)
    writes, deletes = require_writable(operation.on, *entries, kind=ObjectType.COLUMN)
    permit = await ctx.admit(replace(operation, writes=writes, deletes=deletes))
    await ctx.use(Grants).change(permit)
    return changed_grants(await ctx.use(LiveCredentials).after_revocation(permit))


serve(ListColumnGrants, GrantLists.on_object)
serve(ListColumnGrantHistory, GrantLists.history)
serve(ListTableColumnGrants, GrantLists.on_columns)


for managed in GET_PERMISSIONS:
    serve(managed, ManagedAccess.get)
for setting in SET_MANAGED_ACCESS:
    serve(setting, ManagedAccess.set)


for actions in QUERY_RIGHTS:
    serve(actions, Rights.allowed_actions)
for catalog_actions in QUERY_ACTIONS:
    serve(catalog_actions, Rights.catalog_actions)
serve(GetUserActions, Rights.user_actions)


@serves(CheckPermission, reads=(Body(CheckRequest),))
async def check_permission(ctx: Ctx) -> CheckAnswer:
    """Check a permission of the caller, or of another principal."""
    request = await ctx.body(CheckRequest)
    operation = parse_check(request, caller=ctx.actor, default_project_id=ctx.services.default_project_id)
    return await ctx.use(Checks).check(await ctx.admit(operation))


@serves(BatchCheck, reads=(Body(BatchCheckRequest),))
async def batch_check(ctx: Ctx) -> BatchCheckAnswer:
    """Check many permissions in one request."""
    request = await ctx.body(BatchCheckRequest)
    operation, is_known = parse_batch(request, caller=ctx.actor, default_project_id=ctx.services.default_project_id)
    answer = await ctx.use(Checks).batch(await ctx.admit(operation))
    if operation.delegated and any(each.principal is not None for each in operation.checks):
        # `Checks.batch` raises CannotInspectPermissions unless the caller is an inspector or a delegate somewhere.
        ctx.recognize_engine()
    return add_unknown(answer, request.checks, is_known)
