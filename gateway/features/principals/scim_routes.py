# SPDX-License-Identifier: Apache-2.0
"""SCIM 2.0 endpoints, with which identity providers manage users and groups (RFC 7644)."""

from __future__ import annotations

from typing import Final, TypeVar, cast
from uuid import UUID

from litestar import Response
from msgspec import Struct
from msgspec.structs import replace

from gateway.access.idempotency import RecordedSuccess
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
from gateway.access.request import Body, Query
from gateway.api.context import Ctx
from gateway.api.path_refs import uuid_of
from gateway.api.serves import serves
from gateway.features.principals.scim_groups import ScimGroups
from gateway.features.principals.scim_resources import MAX_RESULTS
from gateway.features.principals.scim_users import Discovery, ScimUsers
from gateway.iceberg.errors import BadRequestException
from gateway.scim import discovery
from gateway.scim.errors import FilterNotTaken, InvalidValue, NoSuchResource, NotSupported
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
    Selection,
    UserRequest,
)

_FILTER: Final = (Query("filter"),)
_SELECTION: Final = (Query("attributes"), Query("excludedAttributes"))
_LIST: Final = (*_FILTER, Query("startIndex"), Query("count"), *_SELECTION)

BodyT = TypeVar("BodyT", bound=Struct)
Resource = TypeVar("Resource", ScimUser, ScimGroup)


@serves(GetScimConfig, reads=_FILTER)
async def get_config(ctx: Ctx) -> Response[discovery.ScimConfig]:
    """Return the supported features."""
    await _describe(ctx, GetScimConfig())
    return _scim_response(discovery.config(MAX_RESULTS))


@serves(ListScimResourceTypes, reads=_FILTER)
async def list_resource_types(ctx: Ctx) -> Response[discovery.ScimResourceTypeList]:
    """List the resource types."""
    await _describe(ctx, ListScimResourceTypes())
    return _scim_response(discovery.resource_types())


@serves(GetScimResourceType, reads=_FILTER)
async def get_resource_type(ctx: Ctx) -> Response[discovery.ScimResourceType]:
    """Return a resource type."""
    await _describe(ctx, GetScimResourceType())
    return _scim_response(discovery.resource_type(ctx.path["resource_type"]))


@serves(ListScimSchemas, reads=_FILTER)
async def list_schemas(ctx: Ctx) -> Response[discovery.ScimSchemaList]:
    """List the schemas."""
    await _describe(ctx, ListScimSchemas())
    return _scim_response(discovery.schemas())


@serves(GetScimSchema, reads=_FILTER)
async def get_schema(ctx: Ctx) -> Response[discovery.ScimSchema]:
    """Return the schema of one resource type."""
    await _describe(ctx, GetScimSchema())
    return _scim_response(discovery.schema(ctx.path["schema_urn"]))


async def _describe(ctx: Ctx, operation: Discovery) -> None:
    await ctx.use(ScimUsers).describe(await ctx.admit(operation))
    if ctx.query("filter") is not None:
        raise FilterNotTaken(
            "The schemas, the resource types and the service provider configuration cannot be filtered. Leave out "
            "`filter`."
        )


# ---- users ---------------------------------------------------------------------------------------------------------


@serves(ListScimUsers, reads=_LIST)
async def list_users(ctx: Ctx) -> Response[ScimUserList]:
    """List the provider's users that match a filter."""
    found = await ctx.use(ScimUsers).list(await ctx.admit(ListScimUsers(*_page(ctx))))
    selection = _selection(ctx)
    return _scim_response(replace(found, resources=tuple(selection.narrowed(each) for each in found.resources)))


@serves(GetScimUser, reads=_SELECTION)
async def get_user(ctx: Ctx) -> Response[ScimUser]:
    """Return a user."""
    return _one(ctx, await ctx.use(ScimUsers).get(await ctx.admit(GetScimUser(_id(ctx)))))


async def replay_create_user(ctx: Ctx, recorded_success: RecordedSuccess) -> Response[ScimUser]:
    """Return the current user, with status 201."""
    id = UUID(recorded_success.detail["scim_id"])
    return _one(ctx, await ctx.use(ScimUsers).get(await ctx.admit(GetScimUser(id))), created=True)


async def replay_user(ctx: Ctx, recorded_success: RecordedSuccess) -> Response[ScimUser]:
    """Return the current user."""
    return _one(ctx, await ctx.use(ScimUsers).get(await ctx.admit(GetScimUser(_id(ctx)))))


@serves(CreateScimUser, replay=replay_create_user, reads=(Body(UserRequest), *_SELECTION))
async def create_user(ctx: Ctx) -> Response[ScimUser]:
    """Create a user."""
    operation = CreateScimUser(user_of(await ctx.scim(UserRequest)))
    return _one(ctx, await ctx.use(ScimUsers).create(await ctx.admit(operation)), created=True)


@serves(ReplaceScimUser, replay=replay_user, reads=(Body(UserRequest), *_SELECTION))
async def replace_user(ctx: Ctx) -> Response[ScimUser]:
    """Replace all attributes of a user."""
    operation = ReplaceScimUser(_id(ctx), user_of(await ctx.scim(UserRequest)), if_match=ctx.header("if-match"))
    return _one(ctx, await ctx.use(ScimUsers).replace(await ctx.admit(operation)))


@serves(PatchScimUser, replay=replay_user, reads=(Body(PatchRequest), *_SELECTION))
async def patch_user(ctx: Ctx) -> Response[ScimUser]:
    """Change attributes of a user."""
    operation = PatchScimUser(_id(ctx), await ctx.scim(PatchRequest), if_match=ctx.header("if-match"))
    return _one(ctx, await ctx.use(ScimUsers).patch(await ctx.admit(operation)))


@serves(DeleteScimUser)
async def delete_user(ctx: Ctx) -> None:
    """Delete a user and all grants to the user."""
    permit = await ctx.admit(DeleteScimUser(_id(ctx), if_match=ctx.header("if-match")))
    ctx.services.known_callers.discard(await ctx.use(ScimUsers).delete(permit))


# ---- groups --------------------------------------------------------------------------------------------------------


@serves(ListScimGroups, reads=_LIST)
async def list_groups(ctx: Ctx) -> Response[ScimGroupList]:
    """List the provider's groups that match a filter."""
    selection = _selection(ctx)
    operation = ListScimGroups(*_page(ctx), ctx.project(), with_members=selection.takes("members"))
    found = await ctx.use(ScimGroups).list(await ctx.admit(operation))
    return _scim_response(replace(found, resources=tuple(selection.narrowed(each) for each in found.resources)))


@serves(GetScimGroup, reads=_SELECTION)
async def get_group(ctx: Ctx) -> Response[ScimGroup]:
    """Return a group."""
    return await _read_group(ctx)


async def _read_group(ctx: Ctx) -> Response[ScimGroup]:
    operation = GetScimGroup(ctx.project(), _id(ctx), with_members=_selection(ctx).takes("members"))
    return _one(ctx, await ctx.use(ScimGroups).get(await ctx.admit(operation)))


async def replay_create_group(ctx: Ctx, recorded_success: RecordedSuccess) -> Response[ScimGroup]:
    """Return the current group, with status 201."""
    operation = GetScimGroup(ctx.project(), UUID(recorded_success.detail["scim_id"]))
    return _one(ctx, await ctx.use(ScimGroups).get(await ctx.admit(operation)), created=True)


async def replay_group(ctx: Ctx, recorded_success: RecordedSuccess) -> Response[ScimGroup]:
    """Return the current group."""
    return await _read_group(ctx)


@serves(CreateScimGroup, replay=replay_create_group, reads=(Body(GroupRequest), *_SELECTION))
async def create_group(ctx: Ctx) -> Response[ScimGroup]:
    """Create a group."""
    operation = CreateScimGroup(ctx.project(), group_of(await ctx.scim(GroupRequest)))
    return _one(ctx, await ctx.use(ScimGroups).create(await ctx.admit(operation)), created=True)


@serves(ReplaceScimGroup, replay=replay_group, reads=(Body(GroupRequest), *_SELECTION))
async def replace_group(ctx: Ctx) -> Response[ScimGroup]:
    """Replace the name and the members of a group."""
    group = group_of(await ctx.scim(GroupRequest))
    operation = ReplaceScimGroup(ctx.project(), _id(ctx), group, if_match=ctx.header("if-match"))
    return _one(ctx, await ctx.use(ScimGroups).replace(await ctx.admit(operation)))


async def replay_patch_group(ctx: Ctx, recorded_success: RecordedSuccess) -> Response[ScimGroup | None]:
    """Return the requested attributes of the current group."""
    return await _patched(ctx)


@serves(PatchScimGroup, replay=replay_patch_group, reads=(Body(PatchRequest), *_SELECTION))
async def patch_group(ctx: Ctx) -> Response[ScimGroup | None]:
    """Change attributes of a group."""
    group = patched_group(await ctx.scim(PatchRequest))
    operation = PatchScimGroup(ctx.project(), _id(ctx), group, if_match=ctx.header("if-match"))
    await ctx.use(ScimGroups).patch(await ctx.admit(operation))
    return await _patched(ctx)


async def _patched(ctx: Ctx) -> Response[ScimGroup | None]:
    """Return the group if the request names attributes, else 204 (RFC 7644 section 3.5.2).

    A group may have thousands of members, and providers change it often.
    """
    if not ctx.queries("attributes"):
        return Response(None, status_code=204)
    return cast("Response[ScimGroup | None]", await _read_group(ctx))


@serves(DeleteScimGroup)
async def delete_group(ctx: Ctx) -> None:
    """Delete a group: its role, and all grants on the role and to the role."""
    permit = await ctx.admit(DeleteScimGroup(ctx.project(), _id(ctx), if_match=ctx.header("if-match")))
    await ctx.use(ScimGroups).delete(permit)


# ---- requests and answers ------------------------------------------------------------------------------------------


def _id(ctx: Ctx) -> UUID:
    """Return the id in the path. Raises NoSuchResource for a malformed one."""
    try:
        return uuid_of(ctx.path, "scim_id")
    except BadRequestException:
        raise NoSuchResource("The resource with this id does not exist.") from None


def _page(ctx: Ctx) -> tuple[str | None, int, int | None]:
    """Return (filter, number of the first resource counted from 1, largest number of resources) of a list request.

    Raises InvalidValue, and NotSupported for `sortBy`.
    """
    if ctx.refused_query("sortBy"):
        raise NotSupported("`sortBy` is not supported: lists are in the order of the ids.")
    start, count = _number(ctx.query("startIndex"), 1), _number(ctx.query("count"), None)
    return ctx.query("filter"), 1 if start is None else start, count


def _number(text: str | None, least: int | None) -> int | None:
    """Return an integer of a query, but at least `least`. Raises InvalidValue."""
    if text is None:
        return None
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 9:
        raise InvalidValue("startIndex and count must be whole numbers of at most 9 digits.")
    return int(text) if least is None else max(int(text), least)


def _scim_response(body: BodyT) -> Response[BodyT]:
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
    """Return the selection of attributes in the response. List handlers call this once, because lists may be long."""
    return Selection.of(ctx.queries("attributes"), ctx.queries("excludedAttributes"))
