# SPDX-License-Identifier: Apache-2.0
"""Endpoints for users and roles."""

from __future__ import annotations

from uuid import UUID

from litestar import Response

from gateway.access.idempotency import RecordedSuccess
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.role import RoleRef
from gateway.access.nouns.server import UserRef
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
    NamedRoleList,
    RemoveRoleMember,
    Role,
    RoleMembersRequest,
    SearchRole,
    UpdateRole,
    UpdateRoleSourceSystem,
)
from gateway.access.operations.users import (
    CreateUserRequest,
    DeleteSelf,
    DeleteUser,
    GetUser,
    ListAllOwnRoles,
    ListAllUserRoles,
    ListOwnDelegates,
    ListOwnRoles,
    ListUserRoles,
    ListUsers,
    ProvisionUser,
    RegisterSelf,
    SearchUser,
    UpdateSelf,
    UpdateUser,
    UpdateUserRequest,
    User,
    WhoAmI,
)
from gateway.access.request import Body
from gateway.access.tuples import Principal, require_valid_in_tuples
from gateway.api.answers import changed_grants
from gateway.api.context import Ctx
from gateway.api.path_refs import principal_in_path
from gateway.api.serves import replay_by, serve, serves
from gateway.features.grants.delegates import Delegates
from gateway.features.grants.grant_requests import require_writable
from gateway.features.grants.grants import Grants
from gateway.features.live_credentials.live_credentials import LiveCredentials
from gateway.features.principals.role_pages import parse_member
from gateway.features.principals.roles import Roles
from gateway.features.principals.users import Users

_MAX_CACHED = 100_000


async def register_caller(ctx: Ctx) -> None:
    """Create the caller's user record on the first request; each process caches the callers that have one.

    In read-only maintenance no record is created, and the request continues without one. Requests of an engine for a
    user create none either: only the user's own requests do.
    """
    known_callers = ctx.services.known_callers
    if ctx.actor.engine is not None or ctx.actor.id in known_callers or ctx.services.door.pauses(RegisterSelf):
        return
    await ctx.use(Users).register(await ctx.admit(RegisterSelf()))
    if len(known_callers) >= _MAX_CACHED:
        known_callers.clear()
    known_callers.add(ctx.actor.id)


async def replay_user_creation(ctx: Ctx, recorded_success: RecordedSuccess) -> Response[User]:
    """Return the current user record, with the status of the first response."""
    id = (await ctx.body(CreateUserRequest)).id or ctx.actor.id
    user = await ctx.use(Users).get(await ctx.admit(GetUser(UserRef(id))))
    return Response(user, status_code=201 if recorded_success.detail["created"] == "true" else 200)


@serves(RegisterSelf, ProvisionUser, replay=replay_user_creation, reads=(Body(CreateUserRequest),))
async def create_user(ctx: Ctx) -> Response[User]:
    """Register the caller, or with the right to do so another user. Return 201 for a new record, else 200."""
    request = await ctx.body(CreateUserRequest)
    if request.id is None or request.id == ctx.actor.id:
        own = RegisterSelf("create-endpoint", request.name, request.user_type, request.update_if_exists)
        user, created = await ctx.use(Users).register(await ctx.admit(own))
    else:
        id = require_valid_in_tuples(request.id)
        other = ProvisionUser(id, request.name, request.email, request.user_type, request.update_if_exists)
        user, created = await ctx.use(Users).provision(await ctx.admit(other))
    return Response(user, status_code=201 if created else 200)


@serves(UpdateUser, UpdateSelf, replay=replay_by(GetUser, Users.get), reads=(Body(UpdateUserRequest),))
async def update_user(ctx: Ctx) -> User:
    """Change name and type of the caller, or with the right to do so name, type and email of another user."""
    user, request = ctx.ref(UserRef), await ctx.body(UpdateUserRequest)
    if _own(ctx, user):
        return await ctx.use(Users).update(await ctx.admit(UpdateSelf(user, request.name, request.user_type)))
    update = UpdateUser(user, request.name, request.user_type, request.email)
    return await ctx.use(Users).update(await ctx.admit(update))


@serves(DeleteUser, DeleteSelf)
async def delete_user(ctx: Ctx) -> None:
    """Delete the caller's record and grants, or with the right to do so those of another user."""
    user = ctx.ref(UserRef)
    permit = await ctx.admit((DeleteSelf if _own(ctx, user) else DeleteUser)(user))
    try:
        await ctx.use(Users).delete(permit)
    finally:
        # In `finally`, because the commit may have deleted the record even if the delivery of tuples failed.
        ctx.services.known_callers.discard(user.user_id)


@serves(ListUserRoles, ListOwnRoles)
async def list_user_roles(ctx: Ctx) -> NamedRoleList:
    """List the roles that a user is a direct member of."""
    operation: type[ListOwnRoles | ListUserRoles] = ListOwnRoles if _own(ctx, ctx.ref(UserRef)) else ListUserRoles
    return await ctx.use(Users).roles(await ctx.admit(await ctx.read(operation)))


@serves(ListAllUserRoles, ListAllOwnRoles)
async def list_all_user_roles(ctx: Ctx) -> NamedRoleList:
    """List the roles that a user is a direct or indirect member of."""
    own = _own(ctx, ctx.ref(UserRef))
    operation: type[ListAllOwnRoles | ListAllUserRoles] = ListAllOwnRoles if own else ListAllUserRoles
    return await ctx.use(Users).all_roles(await ctx.admit(await ctx.read(operation)))


def _own(ctx: Ctx, user: UserRef) -> bool:
    """Return True if `user` is the caller, unless the caller acts as a role: then only the role's rights count."""
    return user.user_id == ctx.actor.id and ctx.actor.assumed_role is None


serve(WhoAmI, Users.whoami)
serve(ListOwnDelegates, Delegates.of_caller)
serve(ListUsers, Users.list)
serve(GetUser, Users.get)
serve(SearchUser, Users.search)


async def replay_role_creation(ctx: Ctx, recorded_success: RecordedSuccess) -> Role:
    """Return the current role."""
    return await ctx.use(Roles).get(await ctx.admit(GetRole(RoleRef(UUID(recorded_success.detail["role_id"])))))


@serves(AddRoleMembers, reads=(Body(RoleMembersRequest),))
async def add_role_members(ctx: Ctx) -> None:
    """Add users and roles to a role."""
    on, request = ctx.ref(RoleRef), await ctx.body(RoleMembersRequest)
    entries = dict.fromkeys(_entry(member.type, member.id) for member in request.members)
    await ctx.use(Grants).change(await ctx.admit(AddRoleMembers(on, *require_writable(on, tuple(entries), ()))))


@serves(RemoveRoleMember)
async def remove_role_member(ctx: Ctx) -> Response[None]:
    """Remove a user or a role from a role."""
    on, entry = ctx.ref(RoleRef), _entry(ctx.path["member_type"], principal_in_path(ctx.path["member_id"]))
    permit = await ctx.admit(RemoveRoleMember(on, *require_writable(on, (), (entry,))))
    await ctx.use(Grants).change(permit)
    return changed_grants(await ctx.use(LiveCredentials).after_revocation(permit))


def _entry(type: str, id: str) -> Assignment:
    kind, id = parse_member(type, id)
    return Assignment(Privilege.ASSIGNEE, Principal(kind, require_valid_in_tuples(id)))


_AS_IT_IS = replay_by(GetRole, Roles.get)
serve(CreateRole, Roles.create, replay=replay_role_creation)
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
