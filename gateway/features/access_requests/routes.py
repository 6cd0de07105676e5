# SPDX-License-Identifier: Apache-2.0
"""Endpoints for access requests."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from gateway.access.idempotency import RecordedSuccess
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.tag import TagRef
from gateway.access.operations.access_request_bodies import AccessRequest, AccessRequestItem, CreateAccessRequestRequest
from gateway.access.operations.access_requests import (
    ApproveAccessRequest,
    CreateAccessRequest,
    DenyAccessRequest,
    EndAccess,
    FindAccessRequestToApprove,
    FindAccessRequestToDeny,
    FindAccessRequestToEnd,
    FindRequestableTag,
    GetAccessRequest,
    ListAccessRequests,
    RemindOfAccessRequest,
    WithdrawAccessRequest,
)
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.features.access_requests.access_decisions import AccessDecisions
from gateway.features.access_requests.access_requests import AccessRequests
from gateway.features.access_requests.requested_objects import items_of, parse_object
from gateway.features.grants.grant_requests import parse_privileges


async def replay_create(ctx: Ctx, recorded_success: RecordedSuccess) -> AccessRequest:
    """Return the current state of the request."""
    id = UUID(recorded_success.detail["access_request_id"])
    return await ctx.use(AccessRequests).get(await ctx.admit(GetAccessRequest(id)))


@serves(CreateAccessRequest, FindRequestableTag, replay=replay_create)
async def create_access_request(ctx: Ctx) -> AccessRequest:
    """Request privileges on an object."""
    request = await ctx.body(CreateAccessRequestRequest)
    first, *further = [await _requested(ctx, each) for each in items_of(request)]
    return await ctx.use(AccessRequests).create(await ctx.admit(replace(first, further=tuple(further))))


async def _requested(ctx: Ctx, item: AccessRequestItem) -> CreateAccessRequest:
    """Return the request for one object."""
    on = parse_object(item.object)
    privileges = parse_privileges(on.type, item.privileges)
    return await ctx.read(CreateAccessRequest, on=on, privileges=privileges, by_tag=await _tag(ctx, on))


async def _tag(ctx: Ctx, on: Ref) -> TagRef | None:
    return await ctx.use(AccessRequests).find_tag(await ctx.admit(await ctx.read(FindRequestableTag, on=on)))


@serves(ApproveAccessRequest, FindAccessRequestToApprove)
async def approve_access_request(ctx: Ctx) -> None:
    """Find a request, and grant its privileges or a part of them."""
    found = await ctx.use(AccessDecisions).find_to_approve(await ctx.admit(await ctx.read(FindAccessRequestToApprove)))
    await ctx.use(AccessDecisions).approve(await ctx.admit(found))


@serves(DenyAccessRequest, FindAccessRequestToDeny)
async def deny_access_request(ctx: Ctx) -> None:
    """Find a request, and deny it."""
    found = await ctx.use(AccessDecisions).find_to_deny(await ctx.admit(await ctx.read(FindAccessRequestToDeny)))
    await ctx.use(AccessDecisions).deny(await ctx.admit(found))


@serves(EndAccess, FindAccessRequestToEnd)
async def end_access(ctx: Ctx) -> None:
    """Find an approved request, and end its access: as its requester, or as a principal that may grant it."""
    found = await ctx.use(AccessDecisions).find_to_end(await ctx.admit(await ctx.read(FindAccessRequestToEnd)))
    await ctx.use(AccessDecisions).end(await ctx.admit(found))


serve(ListAccessRequests, AccessRequests.list)
serve(GetAccessRequest, AccessRequests.get)
serve(WithdrawAccessRequest, AccessRequests.withdraw)
serve(RemindOfAccessRequest, AccessRequests.remind)
