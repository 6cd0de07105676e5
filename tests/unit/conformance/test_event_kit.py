# SPDX-License-Identifier: Apache-2.0
"""The kit for event sinks: each of its rules detects a sink that breaks it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gateway.events.port import Event, EventRefused
from lakegate.conformance.events import SINK_RULES, SinkSubject, Stored, check_event_sink
from lakegate.conformance.rules import ConformanceError


class KeptSink:
    """A correct sink. Its storage has each event once."""

    name = "kept"

    def __init__(self) -> None:
        self.stored: list[tuple[str, str]] = []

    async def send(self, events: Sequence[Event]) -> None:
        for event in events:
            if len(event.data) > 1_000_000:
                raise EventRefused(event.id, "too large")
            self.keep(event)

    def keep(self, event: Event) -> None:
        if (event.key, str(event.id)) not in self.stored:
            self.stored.append((event.key, str(event.id)))

    async def check(self) -> None:
        """Succeed."""

    async def close(self) -> None:
        """Keep the events."""

    async def read(self) -> Stored:
        return self.stored


class StoresAnEmptyBatch(KeptSink):
    async def send(self, events: Sequence[Event]) -> None:
        await super().send(events)
        if not events:
            self.stored.append(("none", "none"))


class Unordered(KeptSink):
    async def send(self, events: Sequence[Event]) -> None:
        await super().send(list(reversed(events)))


class Loses(KeptSink):
    async def send(self, events: Sequence[Event]) -> None:
        await super().send(events[:99])


class NewIds(KeptSink):
    def keep(self, event: Event) -> None:
        self.stored.append((event.key, str(event.id)))


class Truncates(KeptSink):
    async def send(self, events: Sequence[Event]) -> None:
        for event in events:
            self.keep(event)


class RefusesAll(KeptSink):
    async def send(self, events: Sequence[Event]) -> None:
        large = [event for event in events if len(event.data) > 1_000_000]
        if large:
            raise EventRefused(large[0].id, "too large")
        await super().send(events)


class RefusesTheFirst(KeptSink):
    async def send(self, events: Sequence[Event]) -> None:
        if any(len(event.data) > 1_000_000 for event in events):
            raise EventRefused(events[0].id, "too large")
        await super().send(events)


BROKEN: list[tuple[type[KeptSink], str]] = [
    (StoresAnEmptyBatch, "an empty batch stores nothing"),
    (Unordered, "all events are stored in the order of their key"),
    (Loses, "all events are stored in the order of their key"),
    (NewIds, "duplicates are recognised by their id"),
    (Truncates, "one event is refused alone"),
    (RefusesAll, "one event is refused alone"),
    (RefusesTheFirst, "one event is refused alone"),
]


async def test_a_correct_sink_keeps_all_rules() -> None:
    passed, sink = list[str](), KeptSink()
    await check_event_sink(SinkSubject(sink, sink.read), passed=passed.append)
    assert passed == [rule.name for rule in SINK_RULES] == list(dict.fromkeys(rule for _, rule in BROKEN))


@pytest.mark.parametrize(("kind", "rule"), BROKEN)
async def test_each_rule_detects_a_sink_that_breaks_it(kind: type[KeptSink], rule: str) -> None:
    sink = kind()
    with pytest.raises(ConformanceError) as error:
        await check_event_sink(SinkSubject(sink, sink.read))
    assert error.value.rule == rule
