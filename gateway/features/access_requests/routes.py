# SPDX-License-Identifier: Apache-2.0
"""Endpoints for access requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeVar
from uuid import UUID

from gateway.access.idempotency import RecordedSuccess
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.tag import TagRef
from gateway.access.operations.access_request_bodies import (
    AccessRequest,
    AccessRequestItem,
    CreateAccessRequestRequest,
    TriedAccessRequest,
)
from gateway.access.operations.access_requests import (
    ApproveAccessRequest,
    CreateAccessRequest,
    DenyAccessRequest,
    EndAccess,
    FindAccessRequestToApprove,
    FindAccessRequestToDeny,
    FindAccessRequestToEnd,
    FindRequestableTag,
    FindTagOfDryRun,
    GetAccessRequest,
    ListAccessRequests,
    RemindOfAccessRequest,
    RequestingAccess,
    TryAccessRequest,
    WithdrawAccessRequest,
)
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.features.access_requests.access_decisions import AccessDecisions
from gateway.features.access_requests.access_requests import AccessRequests
from gateway.features.access_requests.deciders import with_deciders
from gateway.features.access_requests.requested_objects import items_of, parse_object
from gateway.features.answers.who_can import WhoCanLists
from gateway.features.grants.grant_requests import parse_privileges

Asking = TypeVar("Asking", CreateAccessRequest, TryAccessRequest)

_FINDING: Final[Mapping[type[RequestingAccess], type[FindRequestableTag]]] = {
    CreateAccessRequest: FindRequestableTag,
    TryAccessRequest: FindTagOfDryRun,
}


async def replay_create(ctx: Ctx, recorded_success: RecordedSuccess) -> AccessRequest:
    """Return the current state of the request."""
    id = UUID(recorded_success.detail["access_request_id"])
    return await ctx.use(AccessRequests).get(await ctx.admit(GetAccessRequest(id)))


@serves(CreateAccessRequest, FindRequestableTag, replay=replay_create)
async def create_access_request(ctx: Ctx) -> AccessRequest:
    """Request privileges on an object."""
    request = await ctx.body(CreateAccessRequestRequest)
    first, *further = [await _requested(ctx, each, CreateAccessRequest) for each in items_of(request)]
    return await ctx.use(AccessRequests).create(await ctx.admit(replace(first, further=tuple(further))))


@serves(TryAccessRequest, FindTagOfDryRun)
async def try_access_request(ctx: Ctx) -> TriedAccessRequest:
    """Return what a request would open. Name the principals that decide, if the caller may read the assignments."""
    request = await ctx.body(CreateAccessRequestRequest)
    first, *further = [await _requested(ctx, each, TryAccessRequest) for each in items_of(request)]
    permit = await ctx.admit(replace(first, further=tuple(further)))
    tried, questions = await ctx.use(AccessRequests).dry_run(permit)
    answers = [await ctx.use(WhoCanLists).who_can(await ctx.admit(each)) for each in questions]
    return with_deciders(tried, answers, permit.actor.id)


async def _requested(ctx: Ctx, item: AccessRequestItem, kind: type[Asking]) -> Asking:
    """Return the operation on one object."""
    on = parse_object(item.object)
    privileges = parse_privileges(on.type, item.privileges)
    return await ctx.read(kind, on=on, privileges=privileges, by_tag=await _tag(ctx, on, _FINDING[kind]))


async def _tag(ctx: Ctx, on: Ref, finding: type[FindRequestableTag]) -> TagRef | None:
    return await ctx.use(AccessRequests).find_tag(await ctx.admit(await ctx.read(finding, on=on)))


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
