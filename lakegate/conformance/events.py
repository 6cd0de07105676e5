# SPDX-License-Identifier: Apache-2.0
"""Conformance kit for event sinks (`gateway.events.port.EventSink`): checks of the rules that every sink must keep.

No command runs it: it needs a function that reads the sink's storage, which only the author of the sink can write. In a
test:

    await check_event_sink(SinkSubject(sink, read))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import uuid_utils

from gateway.events.port import Event, EventRefused, EventSink
from lakegate.conformance.rules import Broken, Rule, require, run_kit

Stored = Sequence[tuple[str, str]]
"""The (key, event id) of each message in the order of storage. Duplicates by id are removed, the first one stays."""
Read = Callable[[], Awaitable[Stored]]

_EVENTS: Final = 100
_KEYS: Final = 7


@dataclass(frozen=True, slots=True)
class SinkSubject:
    """An opened sink whose storage is empty. `read` reads the storage. The sink must refuse an event of `too_large`
    bytes.
    """

    sink: EventSink
    read: Read
    too_large: int = 2_000_000

    async def stored(self) -> dict[str, list[str]]:
        """Return {key: ids of the stored events}, in the order of storage."""
        return _by_key(await self.read())


def event(key: str, size: int = 20) -> Event:
    """Return a new event whose data have about `size` bytes."""
    return Event(
        id=UUID(str(uuid_utils.uuid7())),
        type="createTable",
        source="uri:iceberg-catalog-service:test",
        key=key,
        time=datetime.now(UTC),
        attributes={"tabularid": key, "name": "größe"},
        data=b'{"a":"' + b"x" * size + b'"}',
    )


async def check_event_sink(subject: SinkSubject, *, passed: Callable[[str], None] = lambda _: None) -> None:
    """Check all rules of event sinks. `passed` is called with the name of each rule that holds.

    Raises ConformanceError with the first broken rule.
    """
    await run_kit(SINK_RULES, subject, passed=passed)


def _by_key(pairs: Stored) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, event_id in pairs:
        found.setdefault(key, []).append(event_id)
    return found


def _expected(events: Sequence[Event]) -> dict[str, list[str]]:
    return _by_key([(event.key, str(event.id)) for event in events])


def _of(stored: dict[str, list[str]], events: Sequence[Event]) -> dict[str, list[str]]:
    """Return the part of `stored` that consists of the ids of these events."""
    ids = {str(event.id) for event in events}
    return _by_key([(key, id) for key, all in stored.items() for id in all if id in ids])


async def _accepts_an_empty_batch(subject: SinkSubject) -> None:
    await subject.sink.check()
    await subject.sink.send([])
    require(await subject.stored() == {}, "the storage is not empty after an empty batch")


async def _keeps_all_events_in_order(subject: SinkSubject) -> None:
    events = [event(f"key-{number % _KEYS}") for number in range(_EVENTS)]
    await subject.sink.send(events)
    require(
        _of(await subject.stored(), events) == _expected(events), "events are missing or not in the order of their key"
    )


async def _marks_duplicates(subject: SinkSubject) -> None:
    events = [event(f"again-{number % _KEYS}") for number in range(_EVENTS)]
    await subject.sink.send(events)
    await subject.sink.send(events)
    require(
        _of(await subject.stored(), events) == _expected(events), "a second sending is not recognised by the event id"
    )


async def _refuses_one_event_alone(subject: SinkSubject) -> None:
    before, large, after = event("refused-0"), event("refused-1", subject.too_large), event("refused-1")
    try:
        await subject.sink.send([before, large, after])
    except EventRefused as refused:
        require(refused.event_id == large.id, "another event than the large one is refused")
    else:
        raise Broken("no event was refused: `too_large` is too small, or the sink loses large events")
    stored = await subject.stored()
    require(str(before.id) in stored.get("refused-0", ()), "an event before the refused one is not stored")
    await subject.sink.send([after])
    require(
        _of(await subject.stored(), [before, large, after]) == _expected([before, after]),
        "an event after the refused one is lost",
    )


SINK_RULES: Final = (
    Rule("an empty batch stores nothing", _accepts_an_empty_batch),
    Rule("all events are stored in the order of their key", _keeps_all_events_in_order),
    Rule("duplicates are recognised by their id", _marks_duplicates),
    Rule("one event is refused alone", _refuses_one_event_alone),
)
"""The rules of event sinks, in the order of their checks."""
