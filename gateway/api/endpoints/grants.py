# SPDX-License-Identifier: Apache-2.0
"""Assignment endpoints of the management API: read and write for each object type."""

from __future__ import annotations

from dataclasses import replace

from litestar import Response

from gateway.access.operations.grants import READ_ASSIGNMENTS, WRITE_ASSIGNMENTS, ReadAssignments, WriteAssignments
from gateway.access.request import Body, Query
from gateway.api.answers import changed_grants
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.governance.grant_requests import parse_entries, parse_privileges, require_writable
from gateway.protocol.grants import AssignmentsAnswer, WriteAssignmentsRequest


def _serve_reading(operation: type[ReadAssignments]) -> None:
    @serves(operation, reads=(Query("relations"),))
    async def read(ctx: Ctx) -> AssignmentsAnswer:
        unbound = await ctx.read(operation)
        privileges = parse_privileges(unbound.on.type, ctx.queries("relations"))
        return await ctx.services.grants.read(await ctx.admit(replace(unbound, privileges=privileges)))


def _serve_writing(operation: type[WriteAssignments]) -> None:
    @serves(operation, reads=(Body(WriteAssignmentsRequest),))
    async def write(ctx: Ctx) -> Response[None]:
        unbound = await ctx.read(operation, writes=(), deletes=())
        request = await ctx.body(WriteAssignmentsRequest)
        writes, deletes = require_writable(unbound.on, parse_entries(request.writes), parse_entries(request.deletes))
        permit = await ctx.admit(replace(unbound, writes=writes, deletes=deletes))
        await ctx.services.grants.write(permit)
        exempts = await ctx.services.grants.exempts_caller(permit)
        return changed_grants(await ctx.services.live_credentials.after_revocation(permit), exempts_caller=exempts)


for reading in READ_ASSIGNMENTS:
    _serve_reading(reading)
for writing in WRITE_ASSIGNMENTS:
    _serve_writing(writing)
