# SPDX-License-Identifier: Apache-2.0
"""Grant endpoints of the management API: the assignments of each kind of object."""

from __future__ import annotations

from uuid import UUID

from gateway.access.operations.grants import (
    Assignment,
    ReadNamespaceAssignments,
    ReadProjectAssignments,
    ReadRoleAssignments,
    ReadServerAssignments,
    ReadTableAssignments,
    ReadViewAssignments,
    ReadWarehouseAssignments,
    WriteNamespaceAssignments,
    WriteProjectAssignments,
    WriteRoleAssignments,
    WriteServerAssignments,
    WriteTableAssignments,
    WriteViewAssignments,
    WriteWarehouseAssignments,
)
from gateway.access.refs import NamespaceIdRef, ObjectType, ProjectRef, RoleRef, TableIdRef, ViewIdRef, WarehouseRef
from gateway.access.wire import AssignmentsAnswer, WriteAssignmentsRequest
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.governance.grants import parse_entries, require_grantable
from gateway.iceberg.errors import BadRequestException


async def _change(ctx: Ctx, kind: ObjectType) -> tuple[tuple[Assignment, ...], tuple[Assignment, ...]]:
    request = await ctx.body(WriteAssignmentsRequest)
    writes, deletes = parse_entries(request.writes), parse_entries(request.deletes)
    require_grantable(kind, (*writes, *deletes))
    if set(writes) & set(deletes):
        raise BadRequestException("The same assignment is in writes and in deletes.")
    return writes, deletes


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise BadRequestException("An id in the path is not a UUID.") from None


def _table(warehouse_id: str, table_id: str) -> TableIdRef:
    return TableIdRef(_id(warehouse_id), _id(table_id))


def _view(warehouse_id: str, view_id: str) -> ViewIdRef:
    return ViewIdRef(_id(warehouse_id), _id(view_id))


@serves(ReadServerAssignments)
async def read_server_assignments(ctx: Ctx) -> AssignmentsAnswer:
    """Who holds what on the server."""
    return await ctx.parts.grants.read(await ctx.admit(ReadServerAssignments()))


@serves(WriteServerAssignments)
async def write_server_assignments(ctx: Ctx) -> None:
    """Give and take on the server."""
    change = await _change(ctx, ObjectType.SERVER)
    await ctx.parts.grants.write(await ctx.admit(WriteServerAssignments(*change)))


@serves(ReadProjectAssignments)
async def read_project_assignments(ctx: Ctx, project_id: str) -> AssignmentsAnswer:
    """Who holds what on a project."""
    return await ctx.parts.grants.read(await ctx.admit(ReadProjectAssignments(ProjectRef(project_id))))


@serves(WriteProjectAssignments)
async def write_project_assignments(ctx: Ctx, project_id: str) -> None:
    """Give and take on a project."""
    change = await _change(ctx, ObjectType.PROJECT)
    await ctx.parts.grants.write(await ctx.admit(WriteProjectAssignments(ProjectRef(project_id), *change)))


@serves(ReadWarehouseAssignments)
async def read_warehouse_assignments(ctx: Ctx, warehouse_id: str) -> AssignmentsAnswer:
    """Who holds what on a warehouse."""
    return await ctx.parts.grants.read(await ctx.admit(ReadWarehouseAssignments(WarehouseRef(_id(warehouse_id)))))


@serves(WriteWarehouseAssignments)
async def write_warehouse_assignments(ctx: Ctx, warehouse_id: str) -> None:
    """Give and take on a warehouse."""
    change = await _change(ctx, ObjectType.WAREHOUSE)
    await ctx.parts.grants.write(await ctx.admit(WriteWarehouseAssignments(WarehouseRef(_id(warehouse_id)), *change)))


@serves(ReadNamespaceAssignments)
async def read_namespace_assignments(ctx: Ctx, namespace_id: str) -> AssignmentsAnswer:
    """Who holds what on a namespace."""
    return await ctx.parts.grants.read(await ctx.admit(ReadNamespaceAssignments(NamespaceIdRef(_id(namespace_id)))))


@serves(WriteNamespaceAssignments)
async def write_namespace_assignments(ctx: Ctx, namespace_id: str) -> None:
    """Give and take on a namespace."""
    change = await _change(ctx, ObjectType.NAMESPACE)
    await ctx.parts.grants.write(await ctx.admit(WriteNamespaceAssignments(NamespaceIdRef(_id(namespace_id)), *change)))


@serves(ReadTableAssignments)
async def read_table_assignments(ctx: Ctx, warehouse_id: str, table_id: str) -> AssignmentsAnswer:
    """Who holds what on a table."""
    return await ctx.parts.grants.read(await ctx.admit(ReadTableAssignments(_table(warehouse_id, table_id))))


@serves(WriteTableAssignments)
async def write_table_assignments(ctx: Ctx, warehouse_id: str, table_id: str) -> None:
    """Give and take on a table."""
    change = await _change(ctx, ObjectType.TABLE)
    await ctx.parts.grants.write(await ctx.admit(WriteTableAssignments(_table(warehouse_id, table_id), *change)))


@serves(ReadViewAssignments)
async def read_view_assignments(ctx: Ctx, warehouse_id: str, view_id: str) -> AssignmentsAnswer:
    """Who holds what on a view."""
    return await ctx.parts.grants.read(await ctx.admit(ReadViewAssignments(_view(warehouse_id, view_id))))


@serves(WriteViewAssignments)
async def write_view_assignments(ctx: Ctx, warehouse_id: str, view_id: str) -> None:
    """Give and take on a view."""
    change = await _change(ctx, ObjectType.VIEW)
    await ctx.parts.grants.write(await ctx.admit(WriteViewAssignments(_view(warehouse_id, view_id), *change)))


@serves(ReadRoleAssignments)
async def read_role_assignments(ctx: Ctx, role_id: str) -> AssignmentsAnswer:
    """Who holds what on a role."""
    return await ctx.parts.grants.read(await ctx.admit(ReadRoleAssignments(RoleRef(_id(role_id)))))


@serves(WriteRoleAssignments)
async def write_role_assignments(ctx: Ctx, role_id: str) -> None:
    """Give and take on a role."""
    change = await _change(ctx, ObjectType.ROLE)
    await ctx.parts.grants.write(await ctx.admit(WriteRoleAssignments(RoleRef(_id(role_id)), *change)))
