# SPDX-License-Identifier: Apache-2.0
"""Role endpoints of the management API."""

from __future__ import annotations

from uuid import UUID

from litestar import Response

from gateway.access.idempotency import RecordedSuccess
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
from gateway.access.privileges import Privilege
from gateway.access.refs import RoleRef
from gateway.access.request import Body
from gateway.access.tuples import Principal, require_valid_in_tuples
from gateway.api.answers import changed_grants
from gateway.api.context import Ctx
from gateway.api.principal_ids import principal_in_path
from gateway.api.serves import replay_by, serve, serves
from gateway.governance.grant_requests import require_writable
from gateway.governance.role_pages import parse_member
from gateway.governance.roles import Roles
from gateway.protocol.roles import Role, RoleMembersRequest


async def replay_create(ctx: Ctx, recorded_success: RecordedSuccess) -> Role:
    """Return the current role."""
    return await ctx.services.roles.get(await ctx.admit(GetRole(RoleRef(UUID(recorded_success.detail["role_id"])))))


@serves(AddRoleMembers, reads=(Body(RoleMembersRequest),))
async def add_role_members(ctx: Ctx) -> None:
    """Add users and roles to a role."""
    on, request = ctx.ref(RoleRef), await ctx.body(RoleMembersRequest)
    entries = dict.fromkeys(_entry(member.type, member.id) for member in request.members)
    await ctx.services.grants.change(await ctx.admit(AddRoleMembers(on, *require_writable(on, tuple(entries), ()))))


@serves(RemoveRoleMember)
async def remove_role_member(ctx: Ctx) -> Response[None]:
    """Remove a user or a role from a role."""
    on, entry = ctx.ref(RoleRef), _entry(ctx.path["member_type"], principal_in_path(ctx.path["member_id"]))
    permit = await ctx.admit(RemoveRoleMember(on, *require_writable(on, (), (entry,))))
    await ctx.services.grants.change(permit)
    return changed_grants(await ctx.services.live_credentials.after_revocation(permit))


def _entry(type: str, id: str) -> Assignment:
    kind, id = parse_member(type, id)
    return Assignment(Privilege.ASSIGNEE, Principal(kind, require_valid_in_tuples(id)))


_AS_IT_IS = replay_by(GetRole, Roles.get)
serve(CreateRole, Roles.create, replay=replay_create)
serve(ListRoles, Roles.list)
serve(SearchRole, Roles.search)
serve(GetRole, Roles.get)
serve(GetRoleMetadata, Roles.metadata)
serve(UpdateRole, Roles.update, replay=_AS_IT_IS)
serve(UpdateRoleSourceSystem, Roles.update_source, replay=_AS_IT_IS)
serve(DeleteRole, Roles.delete)
serve(ListRoleMembers, Roles.members)
serve(ListRoleMemberOf, Roles.member_of)
serve(ListAllRoleMembers, Roles.all_members)
serve(ListAllRoleMemberOf, Roles.all_member_of)
