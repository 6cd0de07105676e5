# SPDX-License-Identifier: Apache-2.0
"""Conformance kit for event sinks: functions that any sink must pass, with a reader of what it stored.

A sink of another author passes it with `await conforms(sink, read)`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from uuid import UUID

import uuid_utils

from gateway.events.port import Event, EventRefused, EventSink

Stored = Sequence[tuple[str, str]]
"""The (key, event id) of each message in the order of storage. Duplicates by id are removed, the first one stays."""
Read = Callable[[], Awaitable[Stored]]


def event(key: str, size: int = 20) -> Event:
    """Return a new event whose data have about `size` bytes."""
    return Event(
        id=UUID(str(uuid_utils.uuid7())), type="createTable", source="uri:iceberg-catalog-service:test", key=key,
        time=datetime.now(UTC), attributes={"tabularid": key, "name": "größe"}, data=b'{"a":"' + b"x" * size + b'"}',
    )  # fmt: skip


def _by_key(pairs: Stored) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, event_id in pairs:
        found.setdefault(key, []).append(event_id)
    return found


def _expected(events: Sequence[Event]) -> dict[str, list[str]]:
    return _by_key([(event.key, str(event.id)) for event in events])


async def conforms(sink: EventSink, read: Read, *, too_large: int = 2_000_000) -> None:
    """Check order, completeness, recognisable duplicates and refusal. The storage of the sink must be empty."""
    await sink.check()
    await sink.send([])
    events = [event(f"key-{number % 7}") for number in range(100)]
    await sink.send(events)
    assert _by_key(await read()) == _expected(events), "events are missing or not in the order of their key"
    await sink.send(events)
    assert _by_key(await read()) == _expected(events), "a second sending is not recognised by the event id"
    before, large, after = event("key-0"), event("key-1", too_large), event("key-1")
    try:
        await sink.send([before, large, after])
    except EventRefused as refused:
        assert refused.event_id == large.id, "another event than the large one is refused"
    else:
        raise AssertionError("a large event is accepted, so `too_large` is too small, or it is lost")
    stored = _by_key(await read())
    assert str(before.id) in stored["key-0"], "an event before the refused one is not stored"
    await sink.send([after])
    assert _by_key(await read()) == _expected([*events, before, after]), "an event after the refused one is lost"
