# SPDX-License-Identifier: Apache-2.0
"""User endpoints of the management API, and how callers come to be known."""

from __future__ import annotations

from litestar import Response

from gateway.access.operations.users import (
    DeleteSelf,
    DeleteUser,
    GetUser,
    ListAllOwnRoles,
    ListAllUserRoles,
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
from gateway.access.principal_ids import require_fitting
from gateway.access.refs import UserRef
from gateway.access.repetition import Remembered
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.protocol.roles import NamedRoleList
from gateway.protocol.search import SearchRequest
from gateway.protocol.users import CreateUserRequest, FoundUsers, UpdateUserRequest, User, UserList, WhoAmIAnswer

_REMEMBERED = 100_000


async def meet(ctx: Ctx) -> None:
    """Give the caller a user record on their first call; a process remembers whom it has met. In read-only maintenance
    nobody is registered, and who is not goes on without a record (lakekeeper.md 2.2). Nor is who is only named by an
    engine: a record is made by users themselves.
    """
    met = ctx.parts.met
    if ctx.actor.engine is not None or ctx.actor.id in met or ctx.parts.door.pauses(RegisterSelf):
        return
    await ctx.parts.users.register(await ctx.admit(RegisterSelf()))
    if len(met) >= _REMEMBERED:
        met.clear()
    met.add(ctx.actor.id)


@serves(WhoAmI)
async def whoami(ctx: Ctx) -> WhoAmIAnswer:
    """The caller's own record."""
    return await ctx.parts.users.whoami(await ctx.admit(WhoAmI()))


async def repeat_create(ctx: Ctx, remembered: Remembered) -> Response[User]:
    """The record as it is now, with the status it was answered with."""
    id = (await ctx.body(CreateUserRequest)).id or ctx.actor.id
    user = await ctx.parts.users.get(await ctx.admit(GetUser(UserRef(id))))
    return Response(user, status_code=201 if remembered.detail["created"] == "true" else 200)


@serves(RegisterSelf, ProvisionUser, repeat=repeat_create)
async def create_user(ctx: Ctx) -> Response[User]:
    """Register the caller, or with the right for it somebody else; 201 when new, 200 when it was there."""
    request = await ctx.body(CreateUserRequest)
    if request.id is None or request.id == ctx.actor.id:
        own = RegisterSelf("create-endpoint", request.name, request.user_type, request.update_if_exists)
        user, created = await ctx.parts.users.register(await ctx.admit(own))
    else:
        id = require_fitting(request.id)
        other = ProvisionUser(id, request.name, request.email, request.user_type, request.update_if_exists)
        user, created = await ctx.parts.users.provision(await ctx.admit(other))
    return Response(user, status_code=201 if created else 200)


@serves(ListUsers)
async def list_users(ctx: Ctx) -> UserList:
    """All users, by page."""
    token, size = ctx.page()
    return await ctx.parts.users.list(await ctx.admit(ListUsers(ctx.query("name"), token, size)))


@serves(GetUser)
async def get_user(ctx: Ctx, user_id: str) -> User:
    """One user."""
    return await ctx.parts.users.get(await ctx.admit(GetUser(UserRef(user_id))))


@serves(SearchUser)
async def search_user(ctx: Ctx) -> FoundUsers:
    """Users by a part of their name, verified address or id."""
    request = await ctx.body(SearchRequest)
    return await ctx.parts.users.search(await ctx.admit(SearchUser(request.search)))


async def repeat_update(ctx: Ctx, remembered: Remembered, user_id: str) -> User:
    """The record as it is now."""
    return await ctx.parts.users.get(await ctx.admit(GetUser(UserRef(user_id))))


@serves(UpdateUser, UpdateSelf, repeat=repeat_update)
async def update_user(ctx: Ctx, user_id: str) -> User:
    """Another name and kind of the caller, or with the right for it of another user, then with an address."""
    request = await ctx.body(UpdateUserRequest)
    user = UserRef(user_id)
    if _own(ctx, user_id):
        return await ctx.parts.users.update(await ctx.admit(UpdateSelf(user, request.name, request.user_type)))
    asked = UpdateUser(user, request.name, request.user_type, request.email)
    return await ctx.parts.users.update(await ctx.admit(asked))


@serves(DeleteUser, DeleteSelf)
async def delete_user(ctx: Ctx, user_id: str) -> None:
    """Delete a record with every grant to the user; one's own, or with the right for it somebody else's."""
    operation = DeleteSelf if _own(ctx, user_id) else DeleteUser
    permit = await ctx.admit(operation(UserRef(user_id)))
    try:
        await ctx.parts.users.delete(permit)
    finally:
        # Also when it is not yet in force everywhere: the record is gone then.
        ctx.parts.met.discard(user_id)


@serves(ListUserRoles, ListOwnRoles)
async def list_user_roles(ctx: Ctx, user_id: str) -> NamedRoleList:
    """The roles a user was put into."""
    operation = ListOwnRoles if _own(ctx, user_id) else ListUserRoles
    return await ctx.parts.users.roles(await ctx.admit(operation(UserRef(user_id))))


@serves(ListAllUserRoles, ListAllOwnRoles)
async def list_all_user_roles(ctx: Ctx, user_id: str) -> NamedRoleList:
    """The roles a user is in, also through other roles."""
    operation = ListAllOwnRoles if _own(ctx, user_id) else ListAllUserRoles
    return await ctx.parts.users.all_roles(await ctx.admit(operation(UserRef(user_id))))


def _own(ctx: Ctx, user_id: str) -> bool:
    """Whether callers ask about themselves. Who acts as a role is there with the role's rights alone."""
    return user_id == ctx.actor.id and ctx.actor.assumed_role is None
