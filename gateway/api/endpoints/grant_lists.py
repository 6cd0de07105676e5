# SPDX-License-Identifier: Apache-2.0
"""Endpoints of the grants API: list, history, privileges and change for each object type, and a principal's grants."""

from __future__ import annotations

from dataclasses import replace

from litestar import Response

from gateway.access.operations.grant_lists import (
    CHANGE_GRANTS,
    LIST_GRANT_HISTORY,
    LIST_GRANTS,
    LIST_PRIVILEGES,
    ChangeGrants,
    ListAllPrivileges,
    ListPrincipalGrants,
)
from gateway.access.request import Body
from gateway.api.answers import changed_grants
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.governance.grant_lists import GrantLists
from gateway.governance.grant_requests import parse_grants, require_writable
from gateway.protocol.grants import WriteGrantsRequest


def _serve_changing(operation: type[ChangeGrants]) -> None:
    @serves(operation, reads=(Body(WriteGrantsRequest),))
    async def change(ctx: Ctx) -> Response[None]:
        unbound = await ctx.read(operation, writes=(), deletes=())
        request = await ctx.body(WriteGrantsRequest)
        writes, deletes = require_writable(unbound.on, parse_grants(request.writes), parse_grants(request.deletes))
        permit = await ctx.admit(replace(unbound, writes=writes, deletes=deletes))
        await ctx.services.grants.change(permit)
        exempts = await ctx.services.grants.exempts_caller(permit)
        return changed_grants(await ctx.services.live_credentials.after_revocation(permit), exempts_caller=exempts)


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
