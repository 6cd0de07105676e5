# SPDX-License-Identifier: Apache-2.0
"""User endpoints of the management API, and how callers come to be known."""

from __future__ import annotations

from litestar import Response

from gateway.access.operations.users import GetUser, ListUsers, ProvisionUser, RegisterSelf, WhoAmI
from gateway.access.principal_ids import require_fitting
from gateway.access.refs import UserRef
from gateway.access.wire import CreateUserRequest, User, UserList, WhoAmIAnswer
from gateway.api.context import Ctx
from gateway.api.serves import serves

_REMEMBERED = 100_000


async def meet(ctx: Ctx) -> None:
    """Give the caller a user record on their first call; a process remembers whom it has met."""
    met = ctx.parts.met
    if ctx.actor.id in met:
        return
    await ctx.parts.users.register(await ctx.admit(RegisterSelf()))
    if len(met) >= _REMEMBERED:
        met.clear()
    met.add(ctx.actor.id)


@serves(WhoAmI)
async def whoami(ctx: Ctx) -> WhoAmIAnswer:
    """The caller's own record."""
    return await ctx.parts.users.whoami(await ctx.admit(WhoAmI()))


@serves(RegisterSelf, ProvisionUser)
async def create_user(ctx: Ctx) -> Response[User]:
    """Register the caller, or with the right for it somebody else; 201 when new, 200 when it was there."""
    request = await ctx.body(CreateUserRequest)
    if request.id is None or request.id == ctx.actor.id:
        own = RegisterSelf("create-endpoint", request.name, request.email, request.user_type, request.update_if_exists)
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
