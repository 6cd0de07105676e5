# SPDX-License-Identifier: Apache-2.0
"""Assignment endpoints of the management API: one pair for each kind of object."""

from __future__ import annotations

from gateway.access.operations.grants import (
    ReadAssignments,
    ReadDefaultProjectAssignments,
    ReadGenericTableAssignments,
    ReadNamespaceAssignments,
    ReadProjectAssignments,
    ReadRoleAssignments,
    ReadServerAssignments,
    ReadTableAssignments,
    ReadViewAssignments,
    ReadWarehouseAssignments,
    WriteAssignments,
    WriteDefaultProjectAssignments,
    WriteGenericTableAssignments,
    WriteNamespaceAssignments,
    WriteProjectAssignments,
    WriteRoleAssignments,
    WriteServerAssignments,
    WriteTableAssignments,
    WriteViewAssignments,
    WriteWarehouseAssignments,
)
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.api.targets import Target
from gateway.governance.grant_requests import parse_entries, parse_privileges, require_writable
from gateway.protocol.grants import AssignmentsAnswer, WriteAssignmentsRequest


def _serve(reading: type[ReadAssignments], writing: type[WriteAssignments], target: Target) -> None:
    @serves(reading)
    async def read(ctx: Ctx) -> AssignmentsAnswer:
        on = target(ctx)
        privileges = parse_privileges(on.type, ctx.queries("relations"))
        return await ctx.parts.grants.read(await ctx.admit(reading(on, privileges)))

    @serves(writing)
    async def write(ctx: Ctx) -> None:
        on, request = target(ctx), await ctx.body(WriteAssignmentsRequest)
        change = require_writable(on, parse_entries(request.writes), parse_entries(request.deletes))
        await ctx.parts.grants.write(await ctx.admit(writing(on, *change)))


_serve(ReadServerAssignments, WriteServerAssignments, targets.server)
_serve(ReadDefaultProjectAssignments, WriteDefaultProjectAssignments, targets.default_project)
_serve(ReadProjectAssignments, WriteProjectAssignments, targets.project)
_serve(ReadWarehouseAssignments, WriteWarehouseAssignments, targets.warehouse)
_serve(ReadNamespaceAssignments, WriteNamespaceAssignments, targets.namespace)
_serve(ReadTableAssignments, WriteTableAssignments, targets.kept_table)
_serve(ReadViewAssignments, WriteViewAssignments, targets.kept_view)
_serve(ReadGenericTableAssignments, WriteGenericTableAssignments, targets.kept_generic_table)
_serve(ReadRoleAssignments, WriteRoleAssignments, targets.role)
