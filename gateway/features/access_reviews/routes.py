# SPDX-License-Identifier: Apache-2.0
"""Endpoints for reviews of existing grants."""

from __future__ import annotations

from gateway.access.idempotency import RecordedSuccess
from gateway.access.operations.access_reviews import (
    FindGrantsToReview,
    GrantReviewList,
    ListGrantReviews,
    ReviewedGrantAnswer,
    ReviewGrants,
    ReviewGrantsAnswer,
    ReviewGrantsRequest,
)
from gateway.access.request import Query
from gateway.api.context import Ctx
from gateway.api.serves import serves
from gateway.features.access_requests.requested_objects import parse_object, queried_object
from gateway.features.access_reviews.access_reviews import AccessReviews


async def _review_again(ctx: Ctx, recorded_success: RecordedSuccess) -> ReviewGrantsAnswer:
    """Decide again: grants that ended are reported as gone, and a certificate is recorded a second time."""
    return await _review(ctx)


@serves(ReviewGrants, FindGrantsToReview, replay=_review_again)
async def review_grants(ctx: Ctx) -> ReviewGrantsAnswer:
    """Find grants, and certify or revoke them."""
    return await _review(ctx)


async def _review(ctx: Ctx) -> ReviewGrantsAnswer:
    on = parse_object((await ctx.body(ReviewGrantsRequest)).object)
    found = await ctx.use(AccessReviews).find(await ctx.admit(await ctx.read(FindGrantsToReview, on=on)))
    # All are admitted before the first is done: a refusal changes nothing.
    permits = [await ctx.admit(each) for each in found.operations]
    decisions: list[ReviewedGrantAnswer] = []
    for permit in permits:
        decisions += await ctx.use(AccessReviews).decide(permit)
    return ReviewGrantsAnswer(decisions=decisions, next_page_token=found.next_page_token)


@serves(ListGrantReviews, reads=(Query("type"), Query("id"), Query("warehouseId")))
async def list_grant_reviews(ctx: Ctx) -> GrantReviewList:
    """List the decisions about grants on an object."""
    on = parse_object(queried_object(ctx.query("type"), ctx.query("id"), ctx.query("warehouseId")))
    return await ctx.use(AccessReviews).list(await ctx.admit(await ctx.read(ListGrantReviews, on=on)))
