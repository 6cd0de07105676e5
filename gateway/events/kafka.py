# SPDX-License-Identifier: Apache-2.0
"""Event sink for Kafka. The key of an event selects its partition, and its attributes are `ce_` headers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from gateway.events.cloud_events import DATA_CONTENT_TYPE, attributes, runs_of_distinct_keys
from gateway.events.port import Event, EventRefused, SinkUnavailable

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

FIXED_OPTIONS = frozenset({"bootstrap.servers", "acks", "request.required.acks", "enable.idempotence"})
"""Options of librdkafka that a user cannot set: the address has its own setting, the others keep events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTarget:
    """Brokers and topic of one sink. `options` are options of librdkafka. `timeout` limits each run, in seconds."""

    bootstrap: str
    topic: str
    timeout: float = 10.0
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


class KafkaSink:
    """Produces events to one topic in the binary mode of CloudEvents. All in-sync replicas must acknowledge each event.

    Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/kafka-protocol-binding.md
    """

    def __init__(self, name: str, target: KafkaTarget) -> None:
        self._name = name
        self._target = target
        self._producer: Producer | None = None
        self._was_cut_off = False
        self._lock = asyncio.Lock()

    @property
    def name(self) -> str:
        """Return the unique name of the sink."""
        return self._name

    async def send(self, events: Sequence[Event]) -> None:
        """Produce the events and wait until all replicas in sync have acknowledged each.

        Raises:
            SinkUnavailable: no broker, no topic, no right to write, or no acknowledgement in time.
            EventRefused: a message is larger than the producer or the broker allows.
        """
        async with self._lock:
            for run in runs_of_distinct_keys(events):
                await self._send_run(run)

    async def check(self) -> None:
        """Raise SinkUnavailable if the brokers do not respond or do not have the topic."""
        async with self._lock:
            await asyncio.to_thread(self._find_topic)

    async def close(self) -> None:
        """Close the producer. All messages have been acknowledged or have failed before."""
        async with self._lock:
            self._producer = None

    async def _send_run(self, run: Sequence[Event]) -> None:
        """Produce events with distinct keys concurrently. Raise the error of the first event that failed."""
        outcomes = await asyncio.to_thread(self._produce, run)
        if len(run) > 1 and any(_is_too_large(outcome) for outcome in outcomes.values()):
            # A broker refuses a whole batch of messages even if only one of them is too large.
            outcomes = {}
            for event in run:
                outcomes |= await asyncio.to_thread(self._produce, [event])
        for event in run:
            outcome = outcomes.get(event.id, "no acknowledgement in time")
            if outcome is not None and not _is_too_large(outcome):
                self._producer = None  # its queue may still contain messages, which must not be sent later
                raise self._unavailable(outcome)
        for event in run:
            if outcomes[event.id] is not None:
                raise EventRefused(
                    event.id,
                    f"its {len(event.data)} bytes exceed message.max.bytes of the producer or max.message.bytes of the "
                    "topic",
                )

    def _produce(self, run: Sequence[Event]) -> dict[UUID, KafkaError | Exception | None]:
        """Produce the events in a separate thread. Return {event id: error, or None if the event was acknowledged}."""
        from confluent_kafka import KafkaException

        outcomes: dict[UUID, KafkaError | Exception | None] = {}
        try:
            producer = self._opened()
        except (KafkaException, ValueError, TypeError) as error:
            return {event.id: error for event in run}
        for event in run:

            def delivered(error: KafkaError | None, _: object, event_id: UUID = event.id) -> None:
                outcomes[event_id] = error

            try:
                producer.produce(
                    self._target.topic, event.data, event.key, headers=_headers(event), on_delivery=delivered
                )
            except (KafkaException, BufferError) as error:
                outcomes[event.id] = error
        if producer.flush(self._target.timeout):
            producer.purge()
            producer.flush(0)
        return outcomes

    def _find_topic(self) -> None:
        from confluent_kafka import KafkaException

        try:
            found = self._opened().list_topics(self._target.topic, timeout=self._target.timeout)
        except (KafkaException, ValueError, TypeError) as error:
            raise self._unavailable(error) from error
        problem = found.topics[self._target.topic].error
        if problem is not None:
            raise self._unavailable(problem)

    def _opened(self) -> Producer:
        """Return the producer. If it has lost its brokers, return a new one.

        A broker that was restored from an old copy issues the same producer ids again. Events of two producers with one
        id look like duplicates to it, which it acknowledges without storing them.
        """
        if self._producer is not None:
            self._producer.poll(0)  # calls `_cut_off` for errors since the last use
        if self._producer is None or self._was_cut_off:
            from confluent_kafka import Producer

            milliseconds = int(self._target.timeout * 1000)
            options: dict[str, Any] = {
                "linger.ms": 0,
                "message.timeout.ms": milliseconds,
                "socket.timeout.ms": max(milliseconds, 10),
                "allow.auto.create.topics": False,
                **self._target.options,
                "bootstrap.servers": self._target.bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "error_cb": self._cut_off,
                "log_level": 0,  # no log on standard error: failures are raised instead
            }
            self._was_cut_off = False
            self._producer = Producer(options)
        return self._producer

    def _cut_off(self, _: object) -> None:
        self._was_cut_off = True

    def _unavailable(self, error: object) -> SinkUnavailable:
        return SinkUnavailable(
            f"the event sink {self._name} (Kafka, topic {self._target.topic}) did not store the events: {error}; "
            "check the brokers, the topic and the right to write to it"
        )


def _headers(event: Event) -> list[tuple[str, str | bytes | None]]:
    prefixed = [(f"ce_{name}", value.encode()) for name, value in attributes(event).items()]
    return [("content-type", DATA_CONTENT_TYPE.encode()), *prefixed]


def _is_too_large(outcome: object) -> bool:
    from confluent_kafka import KafkaError, KafkaException

    error = outcome.args[0] if isinstance(outcome, KafkaException) else outcome
    return isinstance(error, KafkaError) and error.code() == KafkaError.MSG_SIZE_TOO_LARGE
