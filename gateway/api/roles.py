# SPDX-License-Identifier: Apache-2.0
"""Role endpoints of the management API."""

from __future__ import annotations

from uuid import UUID

from gateway.access.operations.grants import Assignment
from gateway.access.operations.roles import (
    AddRoleMembers,
    CreateRole,
    DeleteRole,
    GetRole,
    GetRoleMetadata,
    ListAllRoleMemberOf,
    ListAllRoleMembers,
    ListRoleMemberOf,
    ListRoleMembers,
    ListRoles,
    RemoveRoleMember,
    SearchRole,
    UpdateRole,
    UpdateRoleSourceSystem,
)
from gateway.access.principal_ids import require_fitting
from gateway.access.privileges import Privilege
from gateway.access.refs import RoleRef
from gateway.access.repetition import Remembered
from gateway.access.tuples import Principal, PrincipalType
from gateway.api import targets
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.governance.grant_requests import require_writable
from gateway.governance.roles import parse_member
from gateway.iceberg.errors import BadRequestException
from gateway.protocol.roles import (
    CreateRoleRequest,
    NamedRoleList,
    Role,
    RoleList,
    RoleMemberList,
    RoleMembersRequest,
    RoleMetadata,
    RoleSourceRequest,
    UpdateRoleRequest,
)
from gateway.protocol.search import SearchRequest


async def repeat_create(ctx: Ctx, remembered: Remembered) -> Role:
    """The role as it is now."""
    return await ctx.parts.roles.get(await ctx.admit(GetRole(RoleRef(UUID(remembered.detail["role_id"])))))


async def repeat_update(ctx: Ctx, remembered: Remembered) -> Role:
    """The role as it is now."""
    return await ctx.parts.roles.get(await ctx.admit(GetRole(targets.role(ctx))))


@serves(CreateRole, repeat=repeat_create)
async def create_role(ctx: Ctx) -> Role:
    """Create a role."""
    request = await ctx.body(CreateRoleRequest)
    return await ctx.parts.roles.create(await ctx.admit(CreateRole(ctx.project(request.project_id), request)))


@serves(ListRoles)
async def list_roles(ctx: Ctx) -> RoleList:
    """The project's roles, by page."""
    operation = ListRoles(
        ctx.project(),
        _ids(ctx.queries("roleIds")),
        tuple(ctx.queries("sourceIds")),
        tuple(ctx.queries("providerIds")),
        *ctx.page(),
    )
    return await ctx.parts.roles.list(await ctx.admit(operation))


@serves(SearchRole)
async def search_role(ctx: Ctx) -> RoleList:
    """The project's roles by a part of their names."""
    request = await ctx.body(SearchRequest)
    return await ctx.parts.roles.search(await ctx.admit(SearchRole(ctx.project(), request.search)))


@serves(GetRole)
async def get_role(ctx: Ctx) -> Role:
    """One role."""
    return await ctx.parts.roles.get(await ctx.admit(GetRole(targets.role(ctx))))


@serves(GetRoleMetadata)
async def get_role_metadata(ctx: Ctx) -> RoleMetadata:
    """What names a role."""
    return await ctx.parts.roles.metadata(await ctx.admit(GetRoleMetadata(targets.role(ctx))))


@serves(UpdateRole, repeat=repeat_update)
async def update_role(ctx: Ctx) -> Role:
    """Another name and description."""
    on, request = targets.role(ctx), await ctx.body(UpdateRoleRequest)
    return await ctx.parts.roles.update(await ctx.admit(UpdateRole(on, request)))


@serves(UpdateRoleSourceSystem, repeat=repeat_update)
async def update_role_source_system(ctx: Ctx) -> Role:
    """Another provider and source id."""
    on, request = targets.role(ctx), await ctx.body(RoleSourceRequest)
    return await ctx.parts.roles.update_source(await ctx.admit(UpdateRoleSourceSystem(on, request)))


@serves(DeleteRole)
async def delete_role(ctx: Ctx) -> None:
    """Delete a role with all grants on it and to it."""
    await ctx.parts.roles.delete(await ctx.admit(DeleteRole(targets.role(ctx))))


@serves(ListRoleMembers)
async def list_role_members(ctx: Ctx) -> RoleMemberList:
    """Who is in a role, by page."""
    operation = ListRoleMembers(targets.role(ctx), _type(ctx.query("type")), *ctx.page())
    return await ctx.parts.roles.members(await ctx.admit(operation))


@serves(AddRoleMembers)
async def add_role_members(ctx: Ctx) -> None:
    """Put users and roles into a role."""
    on, request = targets.role(ctx), await ctx.body(RoleMembersRequest)
    entries = dict.fromkeys(_entry(member.type, member.id) for member in request.members)
    await ctx.parts.grants.change(await ctx.admit(AddRoleMembers(on, *require_writable(on, tuple(entries), ()))))


@serves(RemoveRoleMember)
async def remove_role_member(ctx: Ctx, member_type: str, member_id: str) -> None:
    """Take somebody out of a role."""
    on, entry = targets.role(ctx), _entry(member_type, member_id)
    await ctx.parts.grants.change(await ctx.admit(RemoveRoleMember(on, *require_writable(on, (), (entry,)))))


@serves(ListRoleMemberOf)
async def list_role_member_of(ctx: Ctx) -> NamedRoleList:
    """The roles that a role is in."""
    return await ctx.parts.roles.member_of(await ctx.admit(ListRoleMemberOf(targets.role(ctx))))


@serves(ListAllRoleMembers)
async def list_all_role_members(ctx: Ctx) -> RoleMemberList:
    """Everybody who is in a role, also through other roles, by page."""
    operation = ListAllRoleMembers(targets.role(ctx), _type(ctx.query("type")), *ctx.page())
    return await ctx.parts.roles.all_members(await ctx.admit(operation))


@serves(ListAllRoleMemberOf)
async def list_all_role_member_of(ctx: Ctx) -> NamedRoleList:
    """The roles that a role is in, also through other roles."""
    return await ctx.parts.roles.all_member_of(await ctx.admit(ListAllRoleMemberOf(targets.role(ctx))))


def _entry(type: str, id: str) -> Assignment:
    kind, id = parse_member(type, id)
    return Assignment(Privilege.ASSIGNEE, Principal(kind, require_fitting(id)))


def _type(text: str | None) -> PrincipalType | None:
    if text is None:
        return None
    try:
        return PrincipalType(text)
    except ValueError:
        raise BadRequestException(f"type is user or role, not {text[:20]!r}.") from None


def _ids(given: list[str]) -> tuple[UUID, ...]:
    try:
        return tuple(UUID(each) for each in given)
    except ValueError:
        raise BadRequestException("roleIds are UUIDs.") from None
