# SPDX-License-Identifier: Apache-2.0
"""Endpoints for tickets, the records of changes that wait for approval."""

from __future__ import annotations

from gateway.access.operations.change_tickets import (
    ApproveChange,
    ChangeTicket,
    FindChangeTicket,
    FindChangeToApprove,
    FindChangeToReject,
    GetChangeTicket,
    ListChangeTickets,
    RejectChange,
)
from gateway.api.context import Ctx
from gateway.api.serves import serve, serves
from gateway.features.approvals.change_tickets import ChangeTickets


@serves(GetChangeTicket, FindChangeTicket)
async def get_change_ticket(ctx: Ctx) -> ChangeTicket:
    """Find a ticket, and return it to its requester or to an approver."""
    found = await ctx.use(ChangeTickets).find(await ctx.admit(await ctx.read(FindChangeTicket)))
    return await ctx.use(ChangeTickets).get(await ctx.admit(found))


@serves(ApproveChange, FindChangeToApprove)
async def approve_change(ctx: Ctx) -> None:
    """Find a ticket, and approve its change."""
    found = await ctx.use(ChangeTickets).find_to_approve(await ctx.admit(await ctx.read(FindChangeToApprove)))
    await ctx.use(ChangeTickets).approve(await ctx.admit(found))


@serves(RejectChange, FindChangeToReject)
async def reject_change(ctx: Ctx) -> None:
    """Find a ticket, and reject its change."""
    found = await ctx.use(ChangeTickets).find_to_reject(await ctx.admit(await ctx.read(FindChangeToReject)))
    await ctx.use(ChangeTickets).reject(await ctx.admit(found))


serve(ListChangeTickets, ChangeTickets.list)
