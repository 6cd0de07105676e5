# SPDX-License-Identifier: Apache-2.0
"""The loop of a sink survives what a sink of another author does, and ends when it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from gateway.db.warehouses import event_deliveries
from gateway.db.warehouses.event_deliveries import StoredEvent
from gateway.events.port import Event
from gateway.features.events.event_delivery import EventDelivery, Pace


class Counts:
    """Observer that keeps the failures."""

    def __init__(self) -> None:
        self.failures = 0

    def events_delivered(self, sink: str, count: int) -> None:
        """Ignore it."""

    def event_failed(self, sink: str, reason: str) -> None:
        """Count it."""
        self.failures += 1

    def events_counted(self, sink: str, waiting: int, dead_letters: int, oldest_seconds: float) -> None:
        """Ignore it."""


class CancellingSink:
    """Sink whose library cancels the future of its first call. Its second call never ends, if `hangs`."""

    name = "sink"

    def __init__(self, *, hangs: bool = False) -> None:
        self.calls = 0
        self.closed = False
        self._hangs = hangs

    async def send(self, events: Sequence[Event]) -> None:
        """Fail once."""
        self.calls += 1
        if self.calls == 1:
            lost = asyncio.get_running_loop().create_future()
            lost.cancel()
            await lost
        if self._hangs:
            await asyncio.Event().wait()

    async def check(self) -> None:
        """Return at once."""

    async def close(self) -> None:
        """Remember it."""
        self.closed = True


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> list[StoredEvent]:
    """Replace the outbox by a list of one event."""
    rows = [StoredEvent(1, uuid7(), datetime.now(UTC), "createTable", "s", "k", {}, b"null", "1")]

    @asynccontextmanager
    async def locked(*_: Any) -> AsyncIterator[object]:
        yield object()

    async def has_waiting(*_: Any) -> bool:
        return bool(rows)

    async def batch(*_: Any) -> list[StoredEvent]:
        return list(rows)

    async def remove(*_: Any) -> None:
        rows.clear()

    for name, replacement in (
        ("locked_sink", locked), ("has_waiting", has_waiting), ("batch", batch), ("remove", remove)
    ):  # fmt: skip
        monkeypatch.setattr(event_deliveries, name, replacement)
    return rows


def _delivery(sink: CancellingSink, counts: Counts) -> EventDelivery:
    pace = Pace(every=0.001, min_backoff=0.001, max_backoff=0.002)
    database: Any = None
    return EventDelivery(database, sink, observer=counts, pace=pace)


async def test_cancelled_future_inside_of_a_sink_does_not_end_the_delivery(waiting: list[StoredEvent]) -> None:
    sink, counts = CancellingSink(), Counts()
    running = asyncio.create_task(_delivery(sink, counts).run())
    async with asyncio.timeout(10):
        while waiting and not running.done():
            await asyncio.sleep(0.001)
    assert (running.done(), waiting, counts.failures) == (False, [], 1)
    running.cancel()
    await asyncio.wait([running], timeout=10)
    assert sink.closed


async def test_delivery_ends_during_a_call_that_hangs(waiting: list[StoredEvent]) -> None:
    sink = CancellingSink(hangs=True)
    running = asyncio.create_task(_delivery(sink, Counts()).run())
    async with asyncio.timeout(10):
        while sink.calls < 2:
            await asyncio.sleep(0.001)
    running.cancel()
    await asyncio.wait([running], timeout=10)
    assert running.cancelled() and sink.closed and waiting
