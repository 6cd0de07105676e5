# SPDX-License-Identifier: Apache-2.0
"""Read all change events that NATS and Kafka have stored, and compare them with the changes that were made."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import nats
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from nats.js.api import ConsumerConfig, DeliverPolicy, StreamConfig
from nats.js.errors import BadRequestError

from tests.support.load.event_changes import Step

TOPIC = "lakegate-events"
SUBJECT = "lakegate.events"
PARTITIONS = 3

_MARK = re.compile(rb"mw\d+x\d+x")
_SNAPSHOT = re.compile(rb'"snapshot-id": ?(\d+)')


@dataclass(frozen=True)
class Arrived:
    """A message of a broker: the key, id and type of the event, and the mark of the change in its data."""

    key: str
    id: str
    type: str
    mark: str


@dataclass(frozen=True)
class Result:
    """The comparison of one broker with the changes.

    `lost`: changes without an event. `unknown`: events without a change. `again`: changes with events of several ids.
    `unequal`: duplicates with another content. `disordered`: objects whose first arrivals are not in order.
    """

    sink: str
    messages: int
    duplicates: int
    lost: int
    unknown: int
    again: int
    unequal: int
    disordered: int

    @property
    def right(self) -> bool:
        """Return True if no rule is broken."""
        return not (self.lost or self.unknown or self.again or self.unequal or self.disordered)


def judge(sink: str, expected: Mapping[str, Sequence[Step]], recorded: set[str], stored: Sequence[Arrived]) -> Result:
    """Compare the messages of a broker with the changes.

    `expected` has the steps of each object in order, as the clients made them. `recorded` has the ids of the events of
    all changes in PostgreSQL, computed from the audit records.
    """
    firsts: dict[str, Arrived] = {}
    for each in stored:
        firsts.setdefault(each.id, each)
    found: dict[str, list[Step]] = {}
    for each in firsts.values():
        found.setdefault(each.key, []).append((each.type, each.mark))
    wanted = Counter((key, step) for key, steps in expected.items() for step in steps)
    arrived = Counter((key, step) for key, steps in found.items() for step in steps)
    extra = arrived - wanted
    again = {each: number for each, number in extra.items() if each in wanted}
    return Result(
        sink=sink,
        messages=len(stored),
        duplicates=len(stored) - len(firsts),
        lost=max((wanted - arrived).total(), len(recorded - set(firsts))),
        unknown=max(extra.total() - sum(again.values()), len(set(firsts) - recorded)),
        again=sum(again.values()),
        unequal=sum(each != firsts[each.id] for each in stored),
        disordered=sum(
            found[key] != list(steps) and Counter(found[key]) == Counter(steps)
            for key, steps in expected.items()
            if key in found
        ),
    )


async def prepare_nats(url: str, **options: Any) -> None:
    """Create the stream with these options, or change its options."""
    client = await nats.connect(url)
    config = StreamConfig(name="events", subjects=[SUBJECT], **options)
    stream = client.jetstream()
    try:
        await stream.add_stream(config)
    except BadRequestError:
        await stream.update_stream(config)
    await client.close()


async def prepare_kafka(bootstrap: str, **options: str) -> None:
    """Create the topic with these options."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1, config=options)
    await asyncio.to_thread(admin.create_topics([topic])[TOPIC].result, 60)


async def read_nats(url: str) -> list[Arrived]:
    """Return all messages of the stream in order."""
    client = await nats.connect(url)
    stream = client.jetstream()
    left = (await stream.stream_info("events")).state.messages
    config = ConsumerConfig(deliver_policy=DeliverPolicy.ALL, max_ack_pending=100_000_000)
    subscription = await stream.pull_subscribe(SUBJECT, config=config)
    found: list[Arrived] = []
    while left > len(found):
        for message in await subscription.fetch(min(500, left - len(found)), timeout=60):
            event = msgspec.json.decode(message.data, type=dict[str, msgspec.Raw])
            key, id, type = (msgspec.json.decode(event[name], type=str) for name in ("objectid", "id", "type"))
            found.append(Arrived(key, id, type, mark_of(bytes(event.get("data", b"")))))
            await message.ack()
    await client.close()
    return found


def read_kafka(bootstrap: str) -> list[Arrived]:
    """Return all messages of the topic, in the order of each partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    found: list[Arrived] = []
    for number in range(PARTITIONS):
        _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, number), timeout=60)
        consumer.assign([TopicPartition(TOPIC, number, 0)])
        position = 0
        while position < end:
            message = consumer.poll(60)
            assert message is not None and message.error() is None
            headers: object = message.headers()
            named = {name: str(value, "utf-8") for name, value in headers} if isinstance(headers, list) else {}
            key = message.key()
            assert key == named["ce_objectid"].encode(), "the key that selects the partition is not the object"
            mark = mark_of(message.value() or b"")
            found.append(Arrived(named["ce_objectid"], named["ce_id"], named["ce_type"], mark))
            position = (message.offset() or 0) + 1
    consumer.close()
    return found


def mark_of(data: bytes) -> str:
    """Return the mark of the change in the data of its event, or the snapshot that it added; empty for neither.

    The first mark is of the property that was set; others may be of removed ones. The first snapshot is the parent.
    """
    mark, snapshots = _MARK.search(data), _SNAPSHOT.findall(data)
    if mark is not None:
        return mark.group().decode()
    return str(snapshots[-1], "utf-8") if snapshots else ""
