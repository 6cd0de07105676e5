# SPDX-License-Identifier: Apache-2.0
"""Operations on tickets. A ticket is the record of a change that waits for approval.

A ticket identifies its object by id, so a rename does not matter. A request for one ticket is decided twice: to find
the object of the ticket, and then for the right on that object. Policies about the object also bind its tickets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Final, Literal
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, StrictRequest
from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.authz_errors import ticket_not_found
from gateway.access.nouns.refs import NamespaceIdRef, ObjectType, Ref, WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation, QuestionOperation, ReadOperation
from gateway.access.operations.deletion import kept
from gateway.access.request import Body, InPath, PageSize, PageToken, Query
from gateway.iceberg.errors import BadRequestException, CatalogError

APPROVES: Final = Can.APPROVE_CHANGES
"""The relation of an approver. Principals that manage the grants of an object hold it too."""

READS_ALL: Final = Can.READ_CHANGE_TICKETS
"""The relation on a warehouse with which a principal lists all of its tickets."""

_TICKETS = "/management/v1/warehouse/{warehouse_id}/change-tickets"


def parse_status(given: Sequence[str]) -> TicketStatus | None:
    """Return the status by which tickets are listed, None for all. Raises BadRequestException for an unknown status."""
    if not given:
        return None
    if given[0] not in set(TicketStatus):
        raise BadRequestException(f"The query parameter status must be one of: {', '.join(TicketStatus)}.")
    return TicketStatus(given[0])


@dataclass(frozen=True)
class FoundTicket:
    """A ticket, the principal that requested it, and the object that the change is about."""

    id: UUID
    principal: str
    on: Ref


def ticket_object(type: ObjectType, warehouse_id: UUID, id: UUID) -> Ref:
    """Return the reference to the object of a ticket by its id. It also finds a dropped table that can be restored."""
    match type:
        case ObjectType.WAREHOUSE:
            return WarehouseRef(id)
        case ObjectType.NAMESPACE:
            return NamespaceIdRef(id, warehouse_id)
        case _:
            return kept(type, warehouse_id, id)


@dataclass(frozen=True)
class ListChangeTickets(ReadOperation):
    """List the tickets of a warehouse that the caller requested, or may decide about; the oldest first.

    Auditors see all of them, without the updates of the changes.
    """

    endpoint: ClassVar[str] = f"GET {_TICKETS}"
    warehouse: InPath[WarehouseRef]
    status: Annotated[TicketStatus | None, Query("status", parse=parse_status)] = None
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.USE, self.warehouse), Demand(READS_ALL, self.warehouse, required=False))


@dataclass(frozen=True)
class FindChangeTicket(ReadOperation):
    """Find the object of a ticket. The right on that object decides."""

    endpoint: ClassVar[str] = f"GET {_TICKETS}/{{ticket_id}}"
    warehouse: InPath[WarehouseRef]
    ticket_id: InPath[UUID]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.USE, self.warehouse),)

    def facts(self) -> Facts:
        return {"ticket_id": str(self.ticket_id)}


@dataclass(frozen=True)
class GetChangeTicket(ReadOperation):
    """Return a ticket to an approver, or to its requester."""

    endpoint: ClassVar[str] = FindChangeTicket.endpoint
    warehouse: WarehouseRef
    ticket: FoundTicket

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.USE, self.warehouse), Demand(APPROVES, self.ticket.on, required=False))

    def facts(self) -> Facts:
        return {"ticket_id": str(self.ticket.id)}

    def hidden(self, ref: Ref) -> CatalogError:
        return ticket_not_found(self.ticket.id) if ref == self.ticket.on else super().hidden(ref)


@dataclass(frozen=True)
class FindingToDecide(QuestionOperation, abstract=True):
    """Mixin of operations that find the object of a ticket to decide about. The right on that object decides."""

    # Read-only: this operation only finds the ticket. A separate operation decides on the ticket.
    pause_reason: ClassVar[str] = "a ticket is found to be decided, and that pauses"
    warehouse: InPath[WarehouseRef]
    ticket_id: InPath[UUID]
    request: Annotated[DecideChangeRequest, Body()]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.USE, self.warehouse),)

    def facts(self) -> Facts:
        return {"ticket_id": str(self.ticket_id)}


@dataclass(frozen=True)
class DecidingChange(ChangeOperation, abstract=True):
    """Mixin of decisions on another principal's pending ticket. The caller must be an approver of its object."""

    event: ClassVar[EventDeclaration] = ChangeEvent(on="ticket.on")
    warehouse: WarehouseRef
    ticket: FoundTicket
    request: DecideChangeRequest

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.USE, self.warehouse), Demand(APPROVES, self.ticket.on))

    def facts(self) -> Facts:
        return {"ticket_id": str(self.ticket.id), "requested_by": self.ticket.principal}

    def hidden(self, ref: Ref) -> CatalogError:
        """Return TicketNotFound, because a caller that does not see the object must not learn its id."""
        return ticket_not_found(self.ticket.id) if ref == self.ticket.on else super().hidden(ref)


@dataclass(frozen=True)
class FindChangeToApprove(FindingToDecide):
    """Find the object of a ticket to approve."""

    endpoint: ClassVar[str] = f"POST {_TICKETS}/{{ticket_id}}/approve"
    returns: ClassVar[int] = 204


@dataclass(frozen=True)
class ApproveChange(DecidingChange):
    """Approve the change of a ticket. The requester then runs the statement again."""

    endpoint: ClassVar[str] = FindChangeToApprove.endpoint
    returns: ClassVar[int] = 204


@dataclass(frozen=True)
class FindChangeToReject(FindingToDecide):
    """Find the object of a ticket to reject."""

    endpoint: ClassVar[str] = f"POST {_TICKETS}/{{ticket_id}}/reject"
    returns: ClassVar[int] = 204


@dataclass(frozen=True)
class RejectChange(DecidingChange):
    """Reject the change of a ticket. The statement is refused until the rejection expires."""

    endpoint: ClassVar[str] = FindChangeToReject.endpoint
    returns: ClassVar[int] = 204


Comment = Annotated[str, msgspec.Meta(max_length=1000, pattern=r"^[^\x00]*(?![\s\S])$")]


class TicketStatus(StrEnum):
    """The state of a ticket. Only a pending ticket can be approved or rejected."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    USED = "used"
    """The approved change was made."""
    LAPSED = "lapsed"
    """The ticket expired, or the verifiers gave other reasons when the statement was run again."""


class ChangeTicketSummary(Answer, frozen=True, omit_defaults=True, kw_only=True):
    """A change that waits for approval, without its updates.

    `object-type` and `object-id` name the object that the change concerns; for a creation, the container of the new
    object. `name` is the name in the request. `reasons` are those of the verifiers. `status` is `lapsed` as soon as
    `expires-at` has passed.
    """

    id: UUID
    status: TicketStatus
    kind: str
    object_type: Literal["warehouse", "namespace", "table", "view", "generic_table"]
    object_id: UUID
    warehouse_id: UUID
    name: str
    principal: str
    reasons: list[str]
    created_at: datetime
    expires_at: datetime
    decided_by: str | None = None
    decided_at: datetime | None = None
    comment: str | None = None
    used_at: datetime | None = None


class ChangeTicket(ChangeTicketSummary, frozen=True, omit_defaults=True, kw_only=True):
    """A change that waits for approval.

    `change` has the updates without the values that differ between two runs of one statement.
    """

    change: dict[str, Any]


class ChangeTicketList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET …/change-tickets`: the oldest tickets first. A request for one ticket returns its updates."""

    change_tickets: list[ChangeTicketSummary]
    next_page_token: str | None = None


class DecideChangeRequest(StrictRequest, frozen=True):
    """Request of `POST …/approve` and `POST …/reject`. The requester sees the comment of a rejection."""

    comment: Comment | None = None
