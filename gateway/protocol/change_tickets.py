# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints for tickets of changes that wait for approval."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, StrictRequest

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
