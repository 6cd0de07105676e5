# SPDX-License-Identifier: Apache-2.0
"""Operations on the delivery of change events: the state of the sinks, dead letters, and replay.

They are an addition to Lakekeeper's API. Events concern all projects, so these operations demand rights on the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, Name, StrictRequest
from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import EventDeclaration, NoEvent
from gateway.access.nouns.relations import Can
from gateway.access.nouns.server import ServerRef
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.request import InBody, PageSize, PageToken, Query


@dataclass(frozen=True)
class _ReadingEvents:
    """Mixin of operations that read the state of event delivery, which concerns all projects."""

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.READ_EVENTS, ServerRef()),)


@dataclass(frozen=True)
class ListEventSinks(_ReadingEvents, ReadOperation):
    """List the sinks of change events with the numbers of their waiting events and dead letters."""

    endpoint: ClassVar[str] = "GET /management/v1/events/sinks"


@dataclass(frozen=True)
class ListEventDeadLetters(_ReadingEvents, ReadOperation):
    """List the events that sinks refused, in the order of the events. `sink` selects those of one sink."""

    endpoint: ClassVar[str] = "GET /management/v1/events/dead-letters"
    sink: Annotated[str | None, Query("sink")] = None
    page_token: PageToken = None
    page_size: PageSize = None


@dataclass(frozen=True)
class _SendingEvents:
    """Mixin of changes of the event outbox.

    They need a right that only administrators and operators of the server have.
    """

    event: ClassVar[EventDeclaration] = NoEvent("it sends existing events again and changes no object of the catalog")

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.MANAGE_EVENTS, ServerRef()),)


@dataclass(frozen=True)
class ReplayEvents(_SendingEvents, ChangeOperation):
    """Send all stored events from a sequence or time on again, to one sink or to all."""

    endpoint: ClassVar[str] = "POST /management/v1/events/replay"
    returns: ClassVar[int] = 204
    request: InBody[ReplayEventsRequest]

    def facts(self) -> Facts:
        return {"sink": self.request.sink or ""}


@dataclass(frozen=True)
class RetryEventDeadLetters(_SendingEvents, ChangeOperation):
    """Send all events again that a sink refused."""

    endpoint: ClassVar[str] = "POST /management/v1/events/dead-letters/retry"
    returns: ClassVar[int] = 204
    request: InBody[RetryDeadLettersRequest]

    def facts(self) -> Facts:
        return {"sink": self.request.sink}


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
