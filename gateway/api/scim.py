# SPDX-License-Identifier: Apache-2.0
"""SCIM 2.0 for directories that keep their users and groups here (RFC 7644)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from litestar import Response
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import fields, replace

from gateway.access.operations.scim import (
    CreateScimGroup,
    CreateScimUser,
    DeleteScimGroup,
    DeleteScimUser,
    GetScimConfig,
    GetScimGroup,
    GetScimUser,
    ListScimGroups,
    ListScimResourceTypes,
    ListScimSchemas,
    ListScimUsers,
    PatchScimGroup,
    PatchScimUser,
    ReplaceScimGroup,
    ReplaceScimUser,
)
from gateway.access.refs import ProjectRef
from gateway.access.repetition import Remembered
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.governance.scim_users import MAX_RESULTS
from gateway.iceberg.errors import BadRequestException
from gateway.scim import discovery
from gateway.scim.errors import InvalidValue, NoSuchResource
from gateway.scim.patch import patched_group
from gateway.scim.reading import group_of, user_of
from gateway.scim.wire import (
    MEDIA_TYPE,
    GroupRequest,
    Meta,
    PatchRequest,
    ScimGroup,
    ScimGroupList,
    ScimUser,
    ScimUserList,
    UserRequest,
)

Told = TypeVar("Told", bound=Struct)
Resource = TypeVar("Resource", ScimUser, ScimGroup)


@serves(GetScimConfig)
async def get_config(ctx: Ctx) -> Response[discovery.ScimConfig]:
    """What is supported."""
    await ctx.parts.scim_users.describe(await ctx.admit(GetScimConfig()))
    return _told(discovery.config(MAX_RESULTS))


@serves(ListScimResourceTypes)
async def list_resource_types(ctx: Ctx) -> Response[discovery.ScimResourceTypeList]:
    """The kinds of resources."""
    await ctx.parts.scim_users.describe(await ctx.admit(ListScimResourceTypes()))
    return _told(discovery.resource_types())


@serves(ListScimSchemas)
async def list_schemas(ctx: Ctx) -> Response[discovery.ScimSchemaList]:
    """The attributes that are kept."""
    await ctx.parts.scim_users.describe(await ctx.admit(ListScimSchemas()))
    return _told(discovery.schemas())


# ---- users ---------------------------------------------------------------------------------------------------------


@serves(ListScimUsers)
async def list_users(ctx: Ctx) -> Response[ScimUserList]:
    """The provider's users that a filter takes."""
    start, count = _number(ctx.query("startIndex"), 1), _number(ctx.query("count"), None)
    operation = ListScimUsers(ctx.query("filter"), 1 if start is None else start, count)
    found = await ctx.parts.scim_users.list(await ctx.admit(operation))
    wanted = _wanted(ctx)
    return _told(replace(found, resources=tuple(_narrowed(each, wanted) for each in found.resources)))


@serves(GetScimUser)
async def get_user(ctx: Ctx) -> Response[ScimUser]:
    """One user."""
    return _one(ctx, await ctx.parts.scim_users.get(await ctx.admit(GetScimUser(_id(ctx)))))


async def repeat_create_user(ctx: Ctx, remembered: Remembered) -> Response[ScimUser]:
    """The user as it is now."""
    id = UUID(remembered.detail["scim_id"])
    return _one(ctx, await ctx.parts.scim_users.get(await ctx.admit(GetScimUser(id))), created=True)


async def repeat_user(ctx: Ctx, remembered: Remembered) -> Response[ScimUser]:
    """The user as it is now."""
    return _one(ctx, await ctx.parts.scim_users.get(await ctx.admit(GetScimUser(_id(ctx)))))


@serves(CreateScimUser, repeat=repeat_create_user)
async def create_user(ctx: Ctx) -> Response[ScimUser]:
    """Make a user."""
    operation = CreateScimUser(user_of(await ctx.scim(UserRequest)))
    return _one(ctx, await ctx.parts.scim_users.create(await ctx.admit(operation)), created=True)


@serves(ReplaceScimUser, repeat=repeat_user)
async def replace_user(ctx: Ctx) -> Response[ScimUser]:
    """Write all of a user."""
    operation = ReplaceScimUser(_id(ctx), user_of(await ctx.scim(UserRequest)))
    return _one(ctx, await ctx.parts.scim_users.replace(await ctx.admit(operation), ctx.header("if-match")))


@serves(PatchScimUser, repeat=repeat_user)
async def patch_user(ctx: Ctx) -> Response[ScimUser]:
    """Write some of a user."""
    operation = PatchScimUser(_id(ctx), await ctx.scim(PatchRequest))
    return _one(ctx, await ctx.parts.scim_users.patch(await ctx.admit(operation), ctx.header("if-match")))


@serves(DeleteScimUser)
async def delete_user(ctx: Ctx) -> None:
    """Delete a user with every grant to the user."""
    permit = await ctx.admit(DeleteScimUser(_id(ctx)))
    ctx.parts.met.discard(await ctx.parts.scim_users.delete(permit, ctx.header("if-match")))


# ---- groups --------------------------------------------------------------------------------------------------------


@serves(ListScimGroups)
async def list_groups(ctx: Ctx) -> Response[ScimGroupList]:
    """The provider's groups that a filter takes."""
    start, count = _number(ctx.query("startIndex"), 1), _number(ctx.query("count"), None)
    operation = ListScimGroups(ctx.query("filter"), 1 if start is None else start, count, _project(ctx))
    permit, wanted = await ctx.admit(operation), _wanted(ctx)
    found = await ctx.parts.scim_groups.list(permit, with_members=wanted("members"))
    return _told(replace(found, resources=tuple(_narrowed(each, wanted) for each in found.resources)))


@serves(GetScimGroup)
async def get_group(ctx: Ctx) -> Response[ScimGroup]:
    """One group."""
    permit = await ctx.admit(GetScimGroup(_project(ctx), _id(ctx)))
    return _one(ctx, await ctx.parts.scim_groups.get(permit, with_members=_wanted(ctx)("members")))


async def repeat_create_group(ctx: Ctx, remembered: Remembered) -> Response[ScimGroup]:
    """The group as it is now."""
    operation = GetScimGroup(_project(ctx), UUID(remembered.detail["scim_id"]))
    return _one(ctx, await ctx.parts.scim_groups.get(await ctx.admit(operation)), created=True)


async def repeat_group(ctx: Ctx, remembered: Remembered) -> Response[ScimGroup]:
    """The group as it is now."""
    return _one(ctx, await ctx.parts.scim_groups.get(await ctx.admit(GetScimGroup(_project(ctx), _id(ctx)))))


@serves(CreateScimGroup, repeat=repeat_create_group)
async def create_group(ctx: Ctx) -> Response[ScimGroup]:
    """Make a group."""
    operation = CreateScimGroup(_project(ctx), group_of(await ctx.scim(GroupRequest)))
    return _one(ctx, await ctx.parts.scim_groups.create(await ctx.admit(operation)), created=True)


@serves(ReplaceScimGroup, repeat=repeat_group)
async def replace_group(ctx: Ctx) -> Response[ScimGroup]:
    """Write all of a group."""
    operation = ReplaceScimGroup(_project(ctx), _id(ctx), group_of(await ctx.scim(GroupRequest)))
    return _one(ctx, await ctx.parts.scim_groups.replace(await ctx.admit(operation), ctx.header("if-match")))


@serves(PatchScimGroup)
async def patch_group(ctx: Ctx) -> None:
    """Write some of a group."""
    operation = PatchScimGroup(_project(ctx), _id(ctx), patched_group(await ctx.scim(PatchRequest)))
    await ctx.parts.scim_groups.patch(await ctx.admit(operation), ctx.header("if-match"))


@serves(DeleteScimGroup)
async def delete_group(ctx: Ctx) -> None:
    """Delete a group: the role, with every grant on it and to it."""
    permit = await ctx.admit(DeleteScimGroup(_project(ctx), _id(ctx)))
    await ctx.parts.scim_groups.delete(permit, ctx.header("if-match"))


# ---- requests and answers ------------------------------------------------------------------------------------------


def _id(ctx: Ctx) -> UUID:
    """The id in the path. Raises NoSuchResource for what is none: nothing can have it."""
    try:
        return ctx.uuid("scim_id")
    except BadRequestException:
        raise NoSuchResource("There is no resource with this id.") from None


def _project(ctx: Ctx) -> ProjectRef:
    """The project whose roles the groups are: the one that the token is for, if it is for one."""
    project = ctx.project()
    if ctx.actor.within is not None and project.project_id != ctx.actor.within:
        raise NoSuchResource("There is no such project.")
    return project


def _number(text: str | None, least: int | None) -> int | None:
    """A whole number of a query; what is below `least` counts as that. Raises InvalidValue."""
    if text is None:
        return None
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 9:
        raise InvalidValue("startIndex and count are whole numbers.")
    return int(text) if least is None else max(int(text), least)


def _told(body: Told) -> Response[Told]:
    return Response(body, media_type=MEDIA_TYPE)


def _one(ctx: Ctx, resource: Resource, *, created: bool = False) -> Response[Resource]:
    headers = {}
    if isinstance(resource.meta, Meta):
        if isinstance(resource.meta.version, str):
            headers["ETag"] = resource.meta.version
        if created:
            headers["Location"] = resource.meta.location
    return Response(_narrowed(resource, _wanted(ctx)), media_type=MEDIA_TYPE, headers=headers)


def _wanted(ctx: Ctx) -> Callable[[str], bool]:
    """Whether an attribute is to be in the answer (RFC 7644 section 3.9), by its name or that of a part of it. Read
    once for a request: the lists may be long.
    """
    only = {each.partition(".")[0].lower() for each in ctx.queries("attributes")}
    but = {each.lower() for each in ctx.queries("excludedAttributes")}
    return lambda attribute: attribute.lower() not in but and (not only or attribute.lower() in only)


def _narrowed(resource: Resource, wanted: Callable[[str], bool]) -> Resource:
    """The resource with the attributes that are wanted; `schemas` and `id` are always there."""
    left: dict[str, UnsetType] = {
        each.name: UNSET
        for each in fields(resource)
        if each.name not in ("schemas", "id") and not wanted(each.encode_name)
    }
    return replace(resource, **left) if left else resource
