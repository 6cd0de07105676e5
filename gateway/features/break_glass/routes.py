# SPDX-License-Identifier: Apache-2.0
"""Endpoints of break-glass."""

from __future__ import annotations

from uuid import UUID

from gateway.access.idempotency import RecordedSuccess
from gateway.access.operations.break_glass import (
    ActivateBreakGlass,
    ConfirmBreakGlass,
    EndBreakGlass,
    FindActivationToConfirm,
    FindActivationToEnd,
    FindActivationToReview,
    ListBreakGlass,
    ReviewBreakGlass,
)
from gateway.access.operations.break_glass_bodies import ActivateBreakGlassRequest, BreakGlassActivation
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.features.break_glass.break_glass import BreakGlass, emergency_object
from gateway.features.grants.grant_requests import parse_privileges


async def replay_activation(ctx: Ctx, recorded_success: RecordedSuccess) -> BreakGlassActivation:
    """Return the current state of the caller's activation."""
    permit = await ctx.admit(ListBreakGlass())
    return await ctx.use(BreakGlass).own(permit, UUID(recorded_success.detail["activation"]))


@serves(ActivateBreakGlass, replay=replay_activation)
async def activate_break_glass(ctx: Ctx) -> BreakGlassActivation:
    """Take privileges on an object for an emergency."""
    request = await ctx.body(ActivateBreakGlassRequest)
    on = emergency_object(request.object)
    privileges = parse_privileges(on.type, request.privileges)
    operation = await ctx.read(ActivateBreakGlass, on=on, privileges=privileges)
    return await ctx.use(BreakGlass).activate(await ctx.admit(operation))


@serves(ConfirmBreakGlass, FindActivationToConfirm)
async def confirm_break_glass(ctx: Ctx) -> None:
    """Find an activation, and confirm it as the second person."""
    found = await ctx.use(BreakGlass).find_to_confirm(await ctx.admit(await ctx.read(FindActivationToConfirm)))
    await ctx.use(BreakGlass).confirm(await ctx.admit(found))


@serves(EndBreakGlass, FindActivationToEnd)
async def end_break_glass(ctx: Ctx) -> None:
    """Find an activation, and end it: as its user, or as a principal that may confirm it."""
    found = await ctx.use(BreakGlass).find_to_end(await ctx.admit(await ctx.read(FindActivationToEnd)))
    await ctx.use(BreakGlass).end(await ctx.admit(found))


@serves(ReviewBreakGlass, FindActivationToReview)
async def review_break_glass(ctx: Ctx) -> None:
    """Find an ended activation, and close its review."""
    found = await ctx.use(BreakGlass).find_to_review(await ctx.admit(await ctx.read(FindActivationToReview)))
    await ctx.use(BreakGlass).review(await ctx.admit(found))


serve(ListBreakGlass, BreakGlass.list)
