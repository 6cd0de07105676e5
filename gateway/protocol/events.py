# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints for change events."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, Name, StrictRequest


class EventSinkState(Answer, frozen=True):
    """The delivery to one sink. `configured` is false for a sink that is no longer in the settings."""

    name: str
    configured: bool
    waiting: int
    dead_letters: int
    oldest_seconds: float


class EventSinkList(Answer, frozen=True):
    """Response of `GET /events/sinks`, by name."""

    sinks: list[EventSinkState]


class EventDeadLetter(Answer, frozen=True):
    """An event that a sink refused, at `refused-at`. `key` is the id of the changed object."""

    sink: str
    sequence: int
    id: UUID
    type: str
    key: str
    refused_at: datetime
    reason: str


class EventDeadLetterList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /events/dead-letters`."""

    dead_letters: list[EventDeadLetter]
    next_page_token: str | None = None


class ReplayEventsRequest(StrictRequest, frozen=True):
    """Request of `POST /events/replay`: exactly one of `from-sequence` and `from-time`. Without `sink`, all sinks."""

    from_sequence: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None
    from_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    sink: Name | None = None


class RetryDeadLettersRequest(StrictRequest, frozen=True):
    """Request of `POST /events/dead-letters/retry`."""

    sink: Name
