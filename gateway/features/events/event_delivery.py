# SPDX-License-Identifier: Apache-2.0
"""Deliver events from the outbox to the sinks, at least once and in the order of each key.

Each sink has a loop in each worker process, and an advisory lock selects the process that delivers. A process that ends
releases the lock, and another one continues with the events that still wait. So a sink can receive an event again, with
the same id. A sink that is down delays only its own events.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

import structlog

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.db.engine.database import Connection, Database
from gateway.db.warehouses import event_deliveries
from gateway.db.warehouses.event_deliveries import SinkState, StoredEvent
from gateway.events.port import Event, EventRefused, EventSink, SinkUnavailable

_log = structlog.get_logger("tasks.event_delivery")

_DELETED_AT_ONCE: Final = 1000
_KEEPING_SECONDS: Final = 10.0
_CLOSE_SECONDS: Final = 5.0


class EventObserver(Protocol):
    """Receiver of the numbers of events, for metrics."""

    def events_delivered(self, sink: str, count: int) -> None:
        """Count delivered events."""
        ...

    def event_failed(self, sink: str, reason: str) -> None:
        """Count a failed batch (`unavailable`) or a refused event (`refused`)."""
        ...

    def events_counted(self, sink: str, waiting: int, dead_letters: int, oldest_seconds: float) -> None:
        """Set the numbers of waiting events and dead letters, and the age of the oldest waiting event."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The times of delivery, in seconds. `batch` is the maximum number of events of one call.

    `call` limits one call of the sink. The wait after a failure begins at `min_backoff` and doubles up to
    `max_backoff`.
    """

    batch: int = 200
    every: float = 0.5
    call: float = 60.0
    min_backoff: float = 0.5
    max_backoff: float = 60.0


class EventDelivery:
    """The delivery to one sink by one process.

    A connection of `sessions` (by default `database`) is held while the sink is called. The search for waiting events
    uses `database`, so a process that delivers nothing opens no connection of `sessions`.
    """

    def __init__(
        self,
        database: Database,
        sink: EventSink,
        *,
        observer: EventObserver,
        pace: Pace,
        sessions: Database | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._sessions = sessions or database
        self._sink = sink
        self._observer = observer
        self._pace = pace
        self._clock = clock
        self._failures = 0
        self._reason = ""
        self._sending = False
        self._not_before = clock()

    async def run(self) -> None:
        """Deliver until the process ends, then close the sink."""
        try:
            while True:
                await self._attempt()
                pause = max(self._pace.every, self._not_before - self._clock())
                await asyncio.sleep(pause)
        finally:
            await self._close()

    async def _attempt(self) -> None:
        try:
            if await event_deliveries.has_waiting(self._database, self._sink.name):
                await self.deliver_waiting()
        except (DatabaseUnavailable, CommitUnknown) as outage:
            _log.warning("events.delivery_postponed", sink=self._sink.name, reason=str(outage))
        except Exception:
            # The loop must survive unexpected errors; they are logged with their traceback.
            _log.exception("events.delivery_failed", sink=self._sink.name)
            self._failed("an unexpected error, which the log shows")

    async def deliver_waiting(self) -> int:
        """Deliver batches until one is not full or the sink fails. Return the number of delivered events.

        Return 0 if another process delivers. Raises DatabaseUnavailable.
        """
        delivered = 0
        async with event_deliveries.locked_sink(self._sessions, self._sink.name) as connection:
            while connection is not None:
                found = await event_deliveries.batch(connection, self._sink.name, self._pace.batch)
                if not found or (count := await self._send(connection, found)) is None:
                    break
                delivered += count
                if count == len(found) < self._pace.batch:
                    # A batch that is not full is the last one until the next poll. Otherwise, under load, each batch
                    # would contain only the few events that were written during the batch before, and the costs of a
                    # batch would not be shared.
                    break
        return delivered

    async def _send(self, connection: Connection, found: Sequence[StoredEvent]) -> int | None:
        """Send a batch and record the result. Return the number of delivered events; None if the sink failed."""
        refused: EventRefused | None = None
        self._sending = True
        try:
            async with asyncio.timeout(self._pace.call):
                await self._sink.send([_event(each) for each in found])
        except EventRefused as refusal:
            refused = refusal
        except SinkUnavailable as error:
            if error.stored > 0:
                await self._record(connection, found[: error.stored])
                self._failures = 0
            self._failed(str(error) or "no reason given")
            return None
        except TimeoutError:
            self._failed("no result in time")
            return None
        except (Exception, asyncio.CancelledError) as error:
            # A sink from another package can raise anything. The events stay in the outbox. If a library cancels a
            # future inside of a sink, CancelledError arrives here, too. It must not end the delivery.
            if isinstance(error, asyncio.CancelledError) and _ends():
                raise
            _log.exception("event_sink.raised", sink=self._sink.name)
            self._failed(type(error).__name__)
            return None
        finally:
            self._sending = False
        stored = found if refused is None else _before(found, refused)
        if stored is None:
            self._failed("the sink refused an event that was not sent")
            return None
        await self._record(connection, stored)
        if refused is not None:
            event = found[len(stored)]
            await event_deliveries.refuse(connection, self._sink.name, event, refused.reason)
            self._observer.event_failed(self._sink.name, "refused")
            _log.warning(
                "event.refused", sink=self._sink.name, id=str(refused.event_id), sequence=event.sequence,
                reason=refused.reason,
            )  # fmt: skip
        if self._failures:
            _log.info("event_sink.recovered", sink=self._sink.name)
        self._failures = 0
        return len(stored)

    async def _record(self, connection: Connection, stored: Sequence[StoredEvent]) -> None:
        await event_deliveries.remove(connection, self._sink.name, stored)
        self._observer.events_delivered(self._sink.name, len(stored))

    async def check(self) -> None:
        """Raise SinkUnavailable if the last call of the sink failed, for `/health`. No request is sent to the sink."""
        if self._clock() < self._not_before:
            raise SinkUnavailable(self._reason)
        if not self._sending:
            await self._sink.check()

    def _failed(self, reason: str) -> None:
        self._reason = reason
        self._observer.event_failed(self._sink.name, "unavailable")
        self._back_off()
        _log.warning("events.delivery_postponed", sink=self._sink.name, reason=reason, failures=self._failures)

    def _back_off(self) -> None:
        """Set the earliest time of the next call: exponential backoff with jitter, on the monotonic clock."""
        longest = min(self._pace.max_backoff, self._pace.min_backoff * 2 ** min(self._failures, 30))
        self._failures += 1
        self._not_before = self._clock() + longest * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._sink.close()
        except Exception as error:
            # A sink from another package can raise anything. The process ends now, so the error is only logged.
            _log.warning("event_sink.close_failed", sink=self._sink.name, reason=type(error).__name__)


class EventKeeping:
    """Deletion of old events, and the metrics of each sink. `sinks` are the configured sinks.

    The workers of one gateway share their metrics, so one of them counts the events. It holds the advisory lock of
    `gateway`, a name that only these workers have, on a connection of `sessions`. Counting and deletion run
    independently: neither waits for the other or fails with it.
    """

    def __init__(
        self,
        database: Database,
        sinks: Sequence[str],
        *,
        observer: EventObserver,
        retention: timedelta,
        gateway: str,
        sessions: Database | None = None,
        every: float = _KEEPING_SECONDS,
    ) -> None:
        self._database = database
        self._sessions = sessions or database
        self._gateway = gateway
        self._observer = observer
        self._retention = retention
        self._every = every
        self._shown = set(sinks)

    async def run(self) -> None:
        """Count and delete until the process ends."""
        await asyncio.gather(self._repeat(self._delete_all_old), self._repeat(self._count_while_first))

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except (DatabaseUnavailable, CommitUnknown) as outage:
                _log.warning("events.keeping_postponed", reason=str(outage))
            except Exception:
                # The loop must survive unexpected errors; they are logged with their traceback.
                _log.exception("events.keeping_failed")
            await self._pause()

    async def _pause(self, spent: float = 0.0) -> None:
        """Wait until the next run: at least ten times as long as the last run took (`spent`, in seconds)."""
        jitter = random.uniform(0.5, 1.5)  # noqa: S311 - jitter, not a secret
        await asyncio.sleep(max(self._every * jitter, 10 * spent))

    async def _delete_all_old(self) -> None:
        while await self.delete_old():
            pass

    async def _count_while_first(self) -> None:
        """Count events until the connection is lost. Return immediately if another worker of this gateway counts."""
        async with event_deliveries.locked_count(self._sessions, self._gateway) as connection:
            while connection is not None:
                began = time.monotonic()
                self._report(await event_deliveries.states_on(connection))
                await self._pause(time.monotonic() - began)

    async def count(self) -> None:
        """Report the state of all sinks, including those that are no longer configured. Raises DatabaseUnavailable."""
        self._report(await event_deliveries.states(self._database))

    def _report(self, found: Sequence[SinkState]) -> None:
        states = {state.sink: state for state in found}
        self._shown |= set(states)
        for sink in self._shown:
            state = states.get(sink)
            if state is None:
                self._observer.events_counted(sink, 0, 0, 0.0)
            else:
                self._observer.events_counted(sink, state.waiting, state.dead_letters, state.oldest_seconds)

    async def delete_old(self) -> bool:
        """Delete a batch of old events and dead letters. Return False if there were none."""
        return bool(await event_deliveries.delete_old(self._database, age=self._retention, limit=_DELETED_AT_ONCE))


def _ends() -> bool:
    """Return True if the current task was cancelled from outside."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _event(stored: StoredEvent) -> Event:
    return Event(
        id=stored.id, type=stored.type, source=stored.source, key=stored.key, time=stored.at,
        attributes=stored.attributes, data=stored.data,
    )  # fmt: skip


def _before(found: Sequence[StoredEvent], refused: EventRefused) -> Sequence[StoredEvent] | None:
    """Return the events of the batch before the refused one: the sink has stored them. None if the refused event is not
    in the batch.
    """
    for position, each in enumerate(found):
        if each.id == refused.event_id:
            return found[:position]
    return None
