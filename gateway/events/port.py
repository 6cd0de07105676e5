# SPDX-License-Identifier: Apache-2.0
"""The interface of event sinks: the event that is sent, and the errors of a sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A stored CloudEvent, ready to be sent."""

    id: UUID
    """A UUIDv7. Duplicates have the same id."""
    type: str
    """The operation, such as `createTable`."""
    source: str
    """`uri:iceberg-catalog-service:<hostname>`."""
    key: str
    """The id of the changed object. Events of one key are sent in order; it is the partition key of Kafka."""
    time: datetime
    attributes: Mapping[str, str]
    """Extension attributes with their CloudEvents names: lower-case letters and digits."""
    data: bytes
    """JSON."""


class SinkUnavailable(Exception):
    """It is unknown which part of the batch the sink has stored. Send the batch again later.

    The first `stored` events of the batch are certainly stored, and need not be sent again.
    """

    stored: int = 0


class EventRefused(Exception):
    """The sink will never accept this one event. The events before it in the batch are stored."""

    def __init__(self, event_id: UUID, reason: str) -> None:
        super().__init__(f"event {event_id} is refused: {reason}")
        self.event_id = event_id
        self.reason = reason


class EventSink(Protocol):
    """A system that receives events."""

    @property
    def name(self) -> str:
        """Return the unique name, which the API, the metrics and `/health` show."""
        ...

    async def send(self, events: Sequence[Event]) -> None:
        """Send events in this order, and return once the sink has stored all of them durably.

        Events may have been sent before.

        Raises:
            SinkUnavailable: nothing is known about the events after the first `stored` ones; send them again later.
            EventRefused: the sink will never accept this one event (too large, invalid); those before it in the
                batch are stored.
        """
        ...

    async def check(self) -> None:
        """Raise SinkUnavailable if the sink cannot accept events now."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
