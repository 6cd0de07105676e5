# SPDX-License-Identifier: Apache-2.0
"""List and read tickets, the records of changes that wait for approval, and approve or reject them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from gateway.access.door.permit import Permit
from gateway.access.management_errors import OwnChangeForbidden, TicketNotPending
from gateway.access.nouns.authz_errors import ticket_not_found
from gateway.access.operations.change_tickets import (
    APPROVES,
    READS_ALL,
    ApproveChange,
    ChangeTicket,
    ChangeTicketList,
    DecidingChange,
    FindChangeTicket,
    FindChangeToApprove,
    FindChangeToReject,
    FindingToDecide,
    FoundTicket,
    GetChangeTicket,
    ListChangeTickets,
    RejectChange,
    TicketStatus,
    ticket_object,
)
from gateway.db.warehouses import change_tickets
from gateway.db.warehouses.change_tickets import TicketHead
from gateway.features.kit import Kit, UseCases
from gateway.features.paging import place_of

_ROWS_AT_ONCE: Final = 200
_MOST_READ: Final = 2000
"""The number of tickets that one request reads at most. A page may be empty and have a token of the next one."""


class ChangeTickets(UseCases):
    """The tickets of a warehouse. `lifetime` is the time in seconds for which an approval or a rejection is valid."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._lifetime = kit.ticket_lifetime

    async def list(self, permit: Permit[ListChangeTickets]) -> ChangeTicketList:
        """Return the caller's own tickets, and the tickets on objects of which the caller is an approver.

        The rows behind the tickets are read after the decision. They may be large.
        """
        operation = permit.operation
        size = min(operation.page_size or self._page_size, self._page_size)
        after, kept, read = place_of(operation.page_token, UUID), list[UUID](), 0
        while read < _MOST_READ:
            async with self._database.read() as connection:
                rows = await change_tickets.page(
                    connection,
                    operation.warehouse.warehouse_id,
                    status=operation.status,
                    after=after,
                    limit=_ROWS_AT_ONCE,
                )
            for row, seen in zip(rows, await self._seen(permit, rows), strict=True):
                if seen and len(kept) == size:
                    return await self._listed(permit, kept, after)
                after = row.id
                if seen:
                    kept.append(row.id)
            read += len(rows)
            if len(rows) < _ROWS_AT_ONCE:
                return await self._listed(permit, kept, None)
        return await self._listed(permit, kept, after)

    async def _listed(
        self, permit: Permit[ListChangeTickets], kept: Sequence[UUID], after: UUID | None
    ) -> ChangeTicketList:
        """Return a page of the tickets in `kept`. `after` is the token of the next page, None for the last page."""
        async with self._database.read() as connection:
            rows = await change_tickets.summaries(connection, kept, status=permit.operation.status)
        return ChangeTicketList(change_tickets=list(rows), next_page_token=None if after is None else str(after))

    async def find(self, permit: Permit[FindChangeTicket]) -> GetChangeTicket:
        """Find the ticket. Return the operation that reads it, which the door decides next. Raises TicketNotFound."""
        operation = permit.operation
        return GetChangeTicket(operation.warehouse, await self._found(operation))

    async def get(self, permit: Permit[GetChangeTicket]) -> ChangeTicket:
        """Return the ticket. Raises TicketNotFound for callers that are neither its requester nor an approver."""
        operation = permit.operation
        found = operation.ticket
        if found.principal != permit.actor.id and not permit.holds(APPROVES, found.on):
            raise ticket_not_found(found.id)
        return await self._current(operation.warehouse.warehouse_id, found.id)

    async def find_to_approve(self, permit: Permit[FindChangeToApprove]) -> ApproveChange:
        """Find the ticket. Return the operation that approves it, which the door decides next. Raises
        TicketNotFound.
        """
        operation = permit.operation
        return ApproveChange(operation.warehouse, await self._found(operation), operation.request)

    async def find_to_reject(self, permit: Permit[FindChangeToReject]) -> RejectChange:
        """Find the ticket. Return the operation that rejects it, which the door decides next. Raises TicketNotFound."""
        operation = permit.operation
        return RejectChange(operation.warehouse, await self._found(operation), operation.request)

    async def approve(self, permit: Permit[ApproveChange]) -> None:
        """Approve the change. Raises OwnChangeForbidden if the caller requested it, TicketNotPending and
        TicketNotFound.
        """
        await self._decide(permit, TicketStatus.APPROVED)

    async def reject(self, permit: Permit[RejectChange]) -> None:
        """Reject the change. Raises the errors of `approve`."""
        await self._decide(permit, TicketStatus.REJECTED)

    async def _decide(self, permit: Permit[ApproveChange] | Permit[RejectChange], status: TicketStatus) -> None:
        operation: DecidingChange = permit.operation
        found = operation.ticket
        if found.principal == permit.actor.id:
            raise OwnChangeForbidden(
                f"You requested the change of ticket {found.id}. Another approver has to decide about it."
            )
        permit.pending_audit.add_details(ticket=str(found.id), requested_by=found.principal)
        async with self._database.change(permit) as connection:
            decided = await change_tickets.decide(
                connection,
                found.id,
                status=status,
                by=permit.actor.id,
                comment=operation.request.comment,
                lifetime=self._lifetime,
            )
            if not decided:
                now = await change_tickets.get(connection, operation.warehouse.warehouse_id, found.id)
                if now is None:
                    raise ticket_not_found(found.id)
                raise TicketNotPending(f"Ticket {found.id} is {now.status.value}. It is not pending.")

    async def _found(self, operation: FindChangeTicket | FindingToDecide) -> FoundTicket:
        warehouse_id = operation.warehouse.warehouse_id
        async with self._database.read() as connection:
            head = await change_tickets.head(connection, warehouse_id, operation.ticket_id)
        if head is None:
            raise ticket_not_found(operation.ticket_id)
        return FoundTicket(head.id, head.principal, ticket_object(head.on.type, warehouse_id, UUID(head.on.id)))

    async def _current(self, warehouse_id: UUID, id: UUID) -> ChangeTicket:
        async with self._database.read() as connection:
            row = await change_tickets.get(connection, warehouse_id, id)
        if row is None:
            raise ticket_not_found(id)
        return row

    async def _seen(self, permit: Permit[ListChangeTickets], rows: Sequence[TicketHead]) -> Sequence[bool]:
        if permit.holds(READS_ALL, permit.operation.warehouse):
            return [True] * len(rows)
        approves = await self._door.visible(permit, APPROVES, [row.on for row in rows]) if rows else []
        return [yes or row.principal == permit.actor.id for row, yes in zip(rows, approves, strict=True)]
