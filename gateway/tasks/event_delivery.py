# SPDX-License-Identifier: Apache-2.0
"""Deliver stored events to one sink: at least once, in order per object, and independently of other sinks.

One process at a time delivers to a sink. A commit never waits for a sink: it only writes a row.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.db import event_deliveries
from gateway.db.engine import Connection, Database
from gateway.db.event_deliveries import StoredEvent
from gateway.events.port import Event, EventRefused, EventSink, SinkUnavailable

_log = structlog.get_logger("tasks.event_delivery")

_REPORT_SECONDS: Final = 10.0
_CLEAN_SECONDS: Final = 60.0
_CLEAN_BATCH: Final = 5000


class DeliveryObserver(Protocol):
    """Counts deliveries, for metrics."""

    def events_delivered(self, sink: str, count: int) -> None:
        """Count events that a sink has stored."""

    def event_delivery_failed(self, sink: str, outcome: str) -> None:
        """Count a batch that a sink did not accept (`unavailable`), or an event that it refused for good."""

    def events_waiting(self, sink: str, *, waiting: int, oldest: float, dead_letters: int) -> None:
        """Set what waits for a sink; `oldest` is in seconds since 1970, or 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Limits of a delivery.

    `every` and `longest_pause` in seconds: the interval between two looks at the outbox, and the longest pause after
    failures. A batch has at most `batch` events and `batch_bytes` of data. `send_seconds` limits one call of the sink.
    """

    every: float = 0.5
    longest_pause: float = 60.0
    batch: int = 500
    batch_bytes: int = 8_000_000
    send_seconds: float = 120.0


class EventDelivery:
    """The delivery of one process to one sink."""

    def __init__(self, database: Database, sink: EventSink, *, observer: DeliveryObserver, pace: Pace) -> None:
        self._database = database
        self._sink = sink
        self._observer = observer
        self._pace = pace
        self._failures = 0
        self._reported_at = -_REPORT_SECONDS

    async def run(self) -> None:
        """Deliver until the process ends."""
        while True:
            await asyncio.sleep(self._pause())
            try:
                if await event_deliveries.something_waits(self._database, self._sink.name):
                    await self.deliver_all()
                await self._report()
            except (DatabaseUnavailable, CommitUnknown) as outage:
                _log.warning("events.delivery_postponed", sink=self._sink.name, reason=str(outage))
            except Exception:
                # The loop must survive unexpected errors, also those of an extension; they are logged.
                self._failures += 1
                _log.exception("events.delivery_failed", sink=self._sink.name)

    async def deliver_all(self) -> int:
        """Deliver everything that waits, in batches. Return the number of events that left the queue.

        Returns early if another process delivers, or if the sink is unavailable. Raises the database's errors.
        """
        done = 0
        async with event_deliveries.sole_deliverer(self._database, self._sink.name) as connection:
            while connection is not None:
                batch = await event_deliveries.waiting(
                    connection, self._sink.name, limit=self._pace.batch, most_bytes=self._pace.batch_bytes
                )
                left = await self._deliver(connection, batch) if batch else 0
                if not left:
                    break
                done += left
        return done

    async def _deliver(self, connection: Connection, batch: Sequence[StoredEvent]) -> int:
        """Send one batch. Return the number of events that left the queue: 0 if the sink is unavailable."""
        try:
            async with asyncio.timeout(self._pace.send_seconds):
                await self._sink.send([_sent(event) for event in batch])
        except EventRefused as refused:
            return await self._refused(connection, batch, refused)
        except (SinkUnavailable, TimeoutError) as unavailable:
            self._failures += 1
            self._observer.event_delivery_failed(self._sink.name, "unavailable")
            reason = str(unavailable) or f"no answer within {self._pace.send_seconds:g} s"
            _log.warning("events.sink_failed", sink=self._sink.name, reason=reason, failures=self._failures)
            return 0
        await self._delivered(connection, [event.sequence for event in batch])
        return len(batch)

    async def _refused(self, connection: Connection, batch: Sequence[StoredEvent], refused: EventRefused) -> int:
        """Keep the refused event as a dead letter. The events before it are stored, those after it still wait."""
        places = [place for place, event in enumerate(batch) if event.id == refused.event_id]
        if not places:
            raise LookupError(f"the sink {self._sink.name} refused an event that it was not sent: {refused.event_id}")
        before, event = batch[: places[0]], batch[places[0]]
        if before:
            await self._delivered(connection, [each.sequence for each in before])
        await event_deliveries.refuse(connection, self._sink.name, event.sequence, refused.reason)
        self._observer.event_delivery_failed(self._sink.name, "refused")
        _log.error(
            "events.event_refused", sink=self._sink.name, event_id=str(event.id), type=event.type, reason=refused.reason
        )
        return len(before) + 1

    async def _delivered(self, connection: Connection, sequences: Sequence[int]) -> None:
        await event_deliveries.delivered(connection, self._sink.name, sequences)
        self._observer.events_delivered(self._sink.name, len(sequences))
        self._failures = 0

    async def _report(self) -> None:
        """Report what waits, at most once in an interval: counting reads every row that waits."""
        if time.monotonic() - self._reported_at < _REPORT_SECONDS:
            return
        self._reported_at = time.monotonic()
        async with self._database.read() as connection:
            for state in await event_deliveries.states(connection, [self._sink.name]):
                if state.sink == self._sink.name:
                    self._observer.events_waiting(
                        state.sink,
                        waiting=state.waiting,
                        oldest=state.oldest.timestamp() if state.oldest else 0.0,
                        dead_letters=state.dead_letters,
                    )

    def _pause(self) -> float:
        """Return the pause in seconds before the next look: longer after each failure, with jitter."""
        pause = min(self._pace.longest_pause, self._pace.every * 2.0 ** min(self._failures, 20))
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret


class EventCleaner:
    """Removes events that no sink needs any more, after a retention for replays."""

    def __init__(self, database: Database, *, keep_seconds: float) -> None:
        self._database = database
        self._keep_seconds = keep_seconds

    async def run(self) -> None:
        """Clean until the process ends."""
        while True:
            await asyncio.sleep(_CLEAN_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
            try:
                await self.clean()
            except (DatabaseUnavailable, CommitUnknown) as outage:
                _log.warning("events.cleaning_postponed", reason=str(outage))

    async def clean(self) -> int:
        """Remove all events that are due, in batches. Return their number. Raises the database's errors."""
        removed = 0
        while True:
            async with self._database.autocommit() as connection:
                some = await event_deliveries.remove_old(
                    connection, keep_seconds=self._keep_seconds, limit=_CLEAN_BATCH
                )
            removed += some
            if some < _CLEAN_BATCH:
                return removed


def _sent(event: StoredEvent) -> Event:
    return Event(
        id=event.id,
        type=event.type,
        source=event.source,
        key=event.key,
        time=event.at,
        attributes=event.attributes,
        data=event.data,
    )
