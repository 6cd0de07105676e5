# SPDX-License-Identifier: Apache-2.0
"""User endpoints of the management API, and the registration of callers on their first request."""

from __future__ import annotations

from litestar import Response

from gateway.access.idempotency import RecordedSuccess
from gateway.access.operations.users import (
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
    WhoAmI,
)
from gateway.access.refs import UserRef
from gateway.access.request import Body
from gateway.access.tuples import require_valid_in_tuples
from gateway.api.context import Ctx
from gateway.api.serves import replay_by, serve, serves
from gateway.governance.delegates import Delegates
from gateway.governance.users import Users
from gateway.protocol.roles import NamedRoleList
from gateway.protocol.users import CreateUserRequest, UpdateUserRequest, User

_MAX_CACHED = 100_000


async def register_caller(ctx: Ctx) -> None:
    """Create the caller's user record on the first request; each process caches the callers that have one.

    In read-only maintenance no record is created, and the request continues without one. Requests of an engine for a
    user create none either: only the user's own requests do.
    """
    known_callers = ctx.services.known_callers
    if ctx.actor.engine is not None or ctx.actor.id in known_callers or ctx.services.door.pauses(RegisterSelf):
        return
    await ctx.services.users.register(await ctx.admit(RegisterSelf()))
    if len(known_callers) >= _MAX_CACHED:
        known_callers.clear()
    known_callers.add(ctx.actor.id)


async def replay_create(ctx: Ctx, recorded_success: RecordedSuccess) -> Response[User]:
    """Return the current user record, with the status of the first response."""
    id = (await ctx.body(CreateUserRequest)).id or ctx.actor.id
    user = await ctx.services.users.get(await ctx.admit(GetUser(UserRef(id))))
    return Response(user, status_code=201 if recorded_success.detail["created"] == "true" else 200)


@serves(RegisterSelf, ProvisionUser, replay=replay_create, reads=(Body(CreateUserRequest),))
async def create_user(ctx: Ctx) -> Response[User]:
    """Register the caller, or with the right to do so another user. Return 201 for a new record, else 200."""
    request = await ctx.body(CreateUserRequest)
    if request.id is None or request.id == ctx.actor.id:
        own = RegisterSelf("create-endpoint", request.name, request.user_type, request.update_if_exists)
        user, created = await ctx.services.users.register(await ctx.admit(own))
    else:
        id = require_valid_in_tuples(request.id)
        other = ProvisionUser(id, request.name, request.email, request.user_type, request.update_if_exists)
        user, created = await ctx.services.users.provision(await ctx.admit(other))
    return Response(user, status_code=201 if created else 200)


@serves(UpdateUser, UpdateSelf, replay=replay_by(GetUser, Users.get), reads=(Body(UpdateUserRequest),))
async def update_user(ctx: Ctx) -> User:
    """Change name and type of the caller, or with the right to do so name, type and email of another user."""
    user, request = ctx.ref(UserRef), await ctx.body(UpdateUserRequest)
    if _own(ctx, user):
        return await ctx.services.users.update(await ctx.admit(UpdateSelf(user, request.name, request.user_type)))
    update = UpdateUser(user, request.name, request.user_type, request.email)
    return await ctx.services.users.update(await ctx.admit(update))


@serves(DeleteUser, DeleteSelf)
async def delete_user(ctx: Ctx) -> None:
    """Delete the caller's record and grants, or with the right to do so those of another user."""
    user = ctx.ref(UserRef)
    permit = await ctx.admit((DeleteSelf if _own(ctx, user) else DeleteUser)(user))
    try:
        await ctx.services.users.delete(permit)
    finally:
        # In `finally`: the delivery of tuples can fail after the commit that deletes the record.
        ctx.services.known_callers.discard(user.user_id)


@serves(ListUserRoles, ListOwnRoles)
async def list_user_roles(ctx: Ctx) -> NamedRoleList:
    """List the roles that a user is a direct member of."""
    operation: type[ListOwnRoles | ListUserRoles] = ListOwnRoles if _own(ctx, ctx.ref(UserRef)) else ListUserRoles
    return await ctx.services.users.roles(await ctx.admit(await ctx.read(operation)))


@serves(ListAllUserRoles, ListAllOwnRoles)
async def list_all_user_roles(ctx: Ctx) -> NamedRoleList:
    """List the roles that a user is a direct or indirect member of."""
    own = _own(ctx, ctx.ref(UserRef))
    operation: type[ListAllOwnRoles | ListAllUserRoles] = ListAllOwnRoles if own else ListAllUserRoles
    return await ctx.services.users.all_roles(await ctx.admit(await ctx.read(operation)))


def _own(ctx: Ctx, user: UserRef) -> bool:
    """Return True if `user` is the caller, unless the caller acts as a role: then only the role's rights count."""
    return user.user_id == ctx.actor.id and ctx.actor.assumed_role is None


serve(WhoAmI, Users.whoami)
serve(ListOwnDelegates, Delegates.of_caller)
serve(ListUsers, Users.list)
serve(GetUser, Users.get)
serve(SearchUser, Users.search)
