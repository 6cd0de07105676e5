# SPDX-License-Identifier: Apache-2.0
"""SCIM 2.0 for directories that keep their users and groups here (RFC 7644)."""

from __future__ import annotations

from typing import Final, TypeVar, cast
from uuid import UUID

from litestar import Response
from msgspec import Struct
from msgspec.structs import replace

from gateway.access.operations.scim import (
    CreateScimGroup,
    CreateScimUser,
    DeleteScimGroup,
    DeleteScimUser,
    GetScimConfig,
    GetScimGroup,
    GetScimResourceType,
    GetScimSchema,
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
from gateway.access.repetition import Remembered
from gateway.access.request import Body, Query
from gateway.api.context import Ctx
from gateway.api.path_refs import uuid_of
from gateway.api.serves import serves
from gateway.governance.scim_resources import MAX_RESULTS
from gateway.governance.scim_users import Discovery
from gateway.iceberg.errors import BadRequestException
from gateway.scim import discovery
from gateway.scim.errors import FilterNotTaken, InvalidValue, NoSuchResource, NotSupported
from gateway.scim.patch import patched_group
from gateway.scim.reading import group_of, user_of
from gateway.scim.selection import Selection
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

_FILTER: Final = (Query("filter"),)
_SELECTION: Final = (Query("attributes"), Query("excludedAttributes"))
_LIST: Final = (*_FILTER, Query("startIndex"), Query("count"), *_SELECTION)

Told = TypeVar("Told", bound=Struct)
Resource = TypeVar("Resource", ScimUser, ScimGroup)


@serves(GetScimConfig, reads=_FILTER)
async def get_config(ctx: Ctx) -> Response[discovery.ScimConfig]:
    """What is supported."""
    await _describe(ctx, GetScimConfig())
    return _told(discovery.config(MAX_RESULTS))


@serves(ListScimResourceTypes, reads=_FILTER)
async def list_resource_types(ctx: Ctx) -> Response[discovery.ScimResourceTypeList]:
    """The kinds of resources."""
    await _describe(ctx, ListScimResourceTypes())
    return _told(discovery.resource_types())


@serves(GetScimResourceType, reads=_FILTER)
async def get_resource_type(ctx: Ctx) -> Response[discovery.ScimResourceType]:
    """One kind of resources."""
    await _describe(ctx, GetScimResourceType())
    return _told(discovery.resource_type(ctx.path["resource_type"]))


@serves(ListScimSchemas, reads=_FILTER)
async def list_schemas(ctx: Ctx) -> Response[discovery.ScimSchemaList]:
    """The attributes that are kept."""
    await _describe(ctx, ListScimSchemas())
    return _told(discovery.schemas())


@serves(GetScimSchema, reads=_FILTER)
async def get_schema(ctx: Ctx) -> Response[discovery.ScimSchema]:
    """The attributes that are kept of one kind of resources."""
    await _describe(ctx, GetScimSchema())
    return _told(discovery.schema(ctx.path["schema_urn"]))


async def _describe(ctx: Ctx, operation: Discovery) -> None:
    await ctx.parts.scim_users.describe(await ctx.admit(operation))
    if ctx.query("filter") is not None:
        raise FilterNotTaken("Schemas, resource types and what is supported are not filtered.")


# ---- users ---------------------------------------------------------------------------------------------------------


@serves(ListScimUsers, reads=_LIST)
async def list_users(ctx: Ctx) -> Response[ScimUserList]:
    """The provider's users that a filter takes."""
    found = await ctx.parts.scim_users.list(await ctx.admit(ListScimUsers(*_page(ctx))))
    selection = _selection(ctx)
    return _told(replace(found, resources=tuple(selection.narrowed(each) for each in found.resources)))


@serves(GetScimUser, reads=_SELECTION)
async def get_user(ctx: Ctx) -> Response[ScimUser]:
    """One user."""
    return _one(ctx, await ctx.parts.scim_users.get(await ctx.admit(GetScimUser(_id(ctx)))))


async def replay_create_user(ctx: Ctx, remembered: Remembered) -> Response[ScimUser]:
    """The user as it is now."""
    id = UUID(remembered.detail["scim_id"])
    return _one(ctx, await ctx.parts.scim_users.get(await ctx.admit(GetScimUser(id))), created=True)


async def replay_user(ctx: Ctx, remembered: Remembered) -> Response[ScimUser]:
    """The user as it is now."""
    return _one(ctx, await ctx.parts.scim_users.get(await ctx.admit(GetScimUser(_id(ctx)))))


@serves(CreateScimUser, replay=replay_create_user, reads=(Body(UserRequest), *_SELECTION))
async def create_user(ctx: Ctx) -> Response[ScimUser]:
    """Make a user."""
    operation = CreateScimUser(user_of(await ctx.scim(UserRequest)))
    return _one(ctx, await ctx.parts.scim_users.create(await ctx.admit(operation)), created=True)


@serves(ReplaceScimUser, replay=replay_user, reads=(Body(UserRequest), *_SELECTION))
async def replace_user(ctx: Ctx) -> Response[ScimUser]:
    """Write all of a user."""
    operation = ReplaceScimUser(_id(ctx), user_of(await ctx.scim(UserRequest)), if_match=ctx.header("if-match"))
    return _one(ctx, await ctx.parts.scim_users.replace(await ctx.admit(operation)))


@serves(PatchScimUser, replay=replay_user, reads=(Body(PatchRequest), *_SELECTION))
async def patch_user(ctx: Ctx) -> Response[ScimUser]:
    """Write some of a user."""
    operation = PatchScimUser(_id(ctx), await ctx.scim(PatchRequest), if_match=ctx.header("if-match"))
    return _one(ctx, await ctx.parts.scim_users.patch(await ctx.admit(operation)))


@serves(DeleteScimUser)
async def delete_user(ctx: Ctx) -> None:
    """Delete a user with every grant to the user."""
    permit = await ctx.admit(DeleteScimUser(_id(ctx), if_match=ctx.header("if-match")))
    ctx.parts.met.discard(await ctx.parts.scim_users.delete(permit))


# ---- groups --------------------------------------------------------------------------------------------------------


@serves(ListScimGroups, reads=_LIST)
async def list_groups(ctx: Ctx) -> Response[ScimGroupList]:
    """The provider's groups that a filter takes."""
    selection = _selection(ctx)
    operation = ListScimGroups(*_page(ctx), ctx.project(), with_members=selection.takes("members"))
    found = await ctx.parts.scim_groups.list(await ctx.admit(operation))
    return _told(replace(found, resources=tuple(selection.narrowed(each) for each in found.resources)))


@serves(GetScimGroup, reads=_SELECTION)
async def get_group(ctx: Ctx) -> Response[ScimGroup]:
    """One group."""
    return await _read_group(ctx)


async def _read_group(ctx: Ctx) -> Response[ScimGroup]:
    operation = GetScimGroup(ctx.project(), _id(ctx), with_members=_selection(ctx).takes("members"))
    return _one(ctx, await ctx.parts.scim_groups.get(await ctx.admit(operation)))


async def replay_create_group(ctx: Ctx, remembered: Remembered) -> Response[ScimGroup]:
    """The group as it is now."""
    operation = GetScimGroup(ctx.project(), UUID(remembered.detail["scim_id"]))
    return _one(ctx, await ctx.parts.scim_groups.get(await ctx.admit(operation)), created=True)


async def replay_group(ctx: Ctx, remembered: Remembered) -> Response[ScimGroup]:
    """The group as it is now."""
    return await _read_group(ctx)


@serves(CreateScimGroup, replay=replay_create_group, reads=(Body(GroupRequest), *_SELECTION))
async def create_group(ctx: Ctx) -> Response[ScimGroup]:
    """Make a group."""
    operation = CreateScimGroup(ctx.project(), group_of(await ctx.scim(GroupRequest)))
    return _one(ctx, await ctx.parts.scim_groups.create(await ctx.admit(operation)), created=True)


@serves(ReplaceScimGroup, replay=replay_group, reads=(Body(GroupRequest), *_SELECTION))
async def replace_group(ctx: Ctx) -> Response[ScimGroup]:
    """Write all of a group."""
    group = group_of(await ctx.scim(GroupRequest))
    operation = ReplaceScimGroup(ctx.project(), _id(ctx), group, if_match=ctx.header("if-match"))
    return _one(ctx, await ctx.parts.scim_groups.replace(await ctx.admit(operation)))


async def replay_patch_group(ctx: Ctx, remembered: Remembered) -> Response[ScimGroup | None]:
    """The group as it is now, as far as it is asked for."""
    return await _patched(ctx)


@serves(PatchScimGroup, replay=replay_patch_group, reads=(Body(PatchRequest), *_SELECTION))
async def patch_group(ctx: Ctx) -> Response[ScimGroup | None]:
    """Write some of a group."""
    group = patched_group(await ctx.scim(PatchRequest))
    operation = PatchScimGroup(ctx.project(), _id(ctx), group, if_match=ctx.header("if-match"))
    await ctx.parts.scim_groups.patch(await ctx.admit(operation))
    return await _patched(ctx)


async def _patched(ctx: Ctx) -> Response[ScimGroup | None]:
    """The group where the request says which attributes of it to tell (RFC 7644 section 3.5.2). Else nothing: a group
    may have thousands of members, and providers change it often.
    """
    if not ctx.queries("attributes"):
        return Response(None, status_code=204)
    return cast("Response[ScimGroup | None]", await _read_group(ctx))


@serves(DeleteScimGroup)
async def delete_group(ctx: Ctx) -> None:
    """Delete a group: the role, with every grant on it and to it."""
    permit = await ctx.admit(DeleteScimGroup(ctx.project(), _id(ctx), if_match=ctx.header("if-match")))
    await ctx.parts.scim_groups.delete(permit)


# ---- requests and answers ------------------------------------------------------------------------------------------


def _id(ctx: Ctx) -> UUID:
    """The id in the path. Raises NoSuchResource for what is none: nothing can have it."""
    try:
        return uuid_of(ctx.path, "scim_id")
    except BadRequestException:
        raise NoSuchResource("There is no resource with this id.") from None


def _page(ctx: Ctx) -> tuple[str | None, int, int | None]:
    """(filter, number of the first resource, how many) of a list. Raises InvalidValue, and NotSupported for an order:
    who takes it for sorted would be told something wrong.
    """
    if ctx.refused_query("sortBy"):
        raise NotSupported("Lists are not sorted here: they are in the order of ids.")
    start, count = _number(ctx.query("startIndex"), 1), _number(ctx.query("count"), None)
    return ctx.query("filter"), 1 if start is None else start, count


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
        headers["Content-Location"] = resource.meta.location
        if isinstance(resource.meta.version, str):
            headers["ETag"] = resource.meta.version
        if created:
            headers["Location"] = resource.meta.location
    return Response(_selection(ctx).narrowed(resource), media_type=MEDIA_TYPE, headers=headers)


def _selection(ctx: Ctx) -> Selection:
    """What is to be told of each resource. Read once for a request: lists may be long."""
    return Selection.of(ctx.queries("attributes"), ctx.queries("excludedAttributes"))
