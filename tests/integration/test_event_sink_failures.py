# SPDX-License-Identifier: Apache-2.0
"""Delivery from PostgreSQL to a real NATS server and a real Kafka broker that are slow, full, restored, or refuse."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest
from confluent_kafka import Consumer, TopicPartition
from nats.js.api import DiscardPolicy
from sqlalchemy import text
from uuid_utils.compat import uuid7

from gateway.db.engine.database import Database
from gateway.db.warehouses import event_deliveries
from gateway.events.kafka import KafkaSink, KafkaTarget
from gateway.events.nats import NatsSink, NatsTarget
from gateway.events.port import EventSink
from gateway.features.events.event_delivery import EventDelivery, Pace
from lakegate.conformance.events import event
from tests.support.lakegate_command import run_lakegate
from tests.support.load.event_brokers import (
    PARTITIONS,
    SUBJECT,
    TOPIC,
    Arrived,
    prepare_kafka,
    prepare_nats,
    read_kafka,
    read_nats,
)
from tests.support.rows.event_outbox import Counts, count_waiting, put_committed
from tests.support.rows.parts import Parts
from tests.support.servers import kafka_server, nats_server
from tests.support.servers.toxic import DELAYED, WELL, Toxic

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

_KEYS = ("a", "b", "c")
_SECONDS = 120.0


class Broker:
    """A NATS server or a Kafka broker with its sink, whose files can be copied and restored."""

    def __init__(self, kind: str, folder: Path, **stream: object) -> None:
        self.kind = kind
        self._data = folder / ("store" if kind == "nats" else "logs")
        self._copy = folder / "copy"
        self.server: nats_server.NatsServer | kafka_server.KafkaServer
        self.server = nats_server.NatsServer(folder) if kind == "nats" else kafka_server.KafkaServer(folder)
        self.server.start()
        asyncio.run(prepare_nats(self.url, **stream) if kind == "nats" else prepare_kafka(self.url))

    @property
    def url(self) -> str:
        """Return the address for clients."""
        host = f"127.0.0.1:{self.server.port}"
        return f"nats://{host}" if self.kind == "nats" else host

    def sink(self, timeout: float = 5.0) -> EventSink:
        """Return a new sink."""
        if self.kind == "nats":
            return NatsSink("nats", NatsTarget(url=self.url, subject=SUBJECT, timeout=timeout))
        return KafkaSink("kafka", KafkaTarget(bootstrap=self.url, topic=TOPIC, timeout=timeout))

    def settings(self) -> dict[str, str]:
        """Return the variables of the sink."""
        if self.kind == "nats":
            named = {"KIND": "nats", "URL": self.url, "SUBJECT": SUBJECT}
        else:
            named = {"KIND": "kafka", "BOOTSTRAP": self.url, "TOPIC": TOPIC}
        return {f"LAKEGATE__EVENTS__SINKS__{self.kind.upper()}__{name}": value for name, value in named.items()}

    def copy(self) -> None:
        """Copy the files of the broker while it is stopped, and start it again."""
        self.server.kill()
        shutil.copytree(self._data, self._copy)
        self.server.start()

    def restore(self) -> None:
        """Stop the broker, and replace its files by the copy."""
        self.server.kill()
        shutil.rmtree(self._data)
        shutil.copytree(self._copy, self._data)

    async def read(self) -> list[Arrived]:
        """Return all stored messages."""
        return await (read_nats(self.url) if self.kind == "nats" else asyncio.to_thread(read_kafka, self.url))


@pytest.fixture(params=["nats", "kafka"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(request.param, tmp_path)
    yield broker
    broker.server.kill()


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    database = Database(parts.database_url, pool_size=8, acquire_timeout=30)
    async with database.transaction() as connection:
        await connection.execute(text("truncate events, event_deliveries, event_dead_letters"))
    yield database
    await database.close()


@asynccontextmanager
async def _delivering(database: Database, *sinks: EventSink) -> AsyncIterator[Counts]:
    """Deliver to the sinks until the block ends."""
    counts = Counts()
    pace = Pace(batch=20, every=0.05, call=60, min_backoff=0.05, max_backoff=0.5)
    running = [asyncio.create_task(EventDelivery(database, sink, observer=counts, pace=pace).run()) for sink in sinks]
    try:
        yield counts
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _delivered(database: Database, sink: str) -> None:
    async with asyncio.timeout(_SECONDS):
        while await count_waiting(database, sink):
            await asyncio.sleep(0.05)


async def _put(database: Database, count: int, *sinks: str) -> list[tuple[str, str]]:
    """Commit events of three keys; return their (key, id) in order."""
    keys = [_KEYS[number % 3] for number in range(count)]
    return list(zip(keys, await put_committed(database, keys, *sinks), strict=True))


def _by_key(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    return {key: list(dict.fromkeys(id for each, id in pairs if each == key)) for key in _KEYS}


def _in_order(stored: Sequence[Arrived], sent: Sequence[tuple[str, str]]) -> bool:
    """Return True if exactly the sent events are stored, those of each key in order of their first arrival."""
    return _by_key([(each.key, each.id) for each in stored]) == _by_key(sent)


def _lakegate(parts: Parts, broker: Broker, *arguments: str) -> str:
    url = parts.database_url.replace("postgresql+asyncpg:", "postgresql:")
    environment = {"LAKEGATE__PG_DATABASE_URL_WRITE": url} | broker.settings()
    done = run_lakegate("events", *arguments, environment=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_replay_brings_back_the_events_that_a_restored_broker_lost(
    broker: Broker, database: Database, parts: Parts
) -> None:
    """The recipe of docs/events.md. A replay after the start would put new events before the lost ones."""
    async with _delivering(database, broker.sink()):
        before = await _put(database, 60, broker.kind)
        await _delivered(database, broker.kind)
        await asyncio.to_thread(broker.copy)
        lost = await _put(database, 60, broker.kind)
        await _delivered(database, broker.kind)
        await asyncio.to_thread(broker.restore)
        # Changes go on while the broker is down.
        later = await _put(database, 30, broker.kind)
        kept = await event_deliveries.kept(database, after=0, limit=1000)
        overlap = next(each for each in kept if str(each.id) == before[45][1])
        # The statement of `lakegate events replay`. The command also needs OpenFGA and OPA, because it is audited.
        async with database.transaction() as connection:
            again = await event_deliveries.replay(connection, [broker.kind], time=overlap.at)
        assert again >= len(lost), "the lost events and those of the overlap wait again"
    # The gateways restart: a call that began before the replay has later events, and must not continue.
    async with _delivering(database, broker.sink()):
        await asyncio.to_thread(broker.server.start)
        await _delivered(database, broker.kind)
    stored = await broker.read()
    assert _in_order(stored, [*before, *lost, *later])
    listed = await asyncio.to_thread(_lakegate, parts, broker, "sinks")
    assert listed == f"{broker.kind}: waiting 0, oldest 0 s, dead letters 0\n"


async def test_idle_kafka_producer_from_before_a_restored_copy_loses_nothing(tmp_path: Path) -> None:
    """A restored broker issues producer ids again. It took the event of the former producer for a duplicate."""
    broker = await asyncio.to_thread(Broker, "kafka", tmp_path)
    try:
        await asyncio.to_thread(broker.copy)
        former = [broker.sink(20), broker.sink(20)]
        for sink in former:
            await sink.send([event("a")])
        await asyncio.to_thread(broker.restore)
        await asyncio.to_thread(broker.server.start)
        # The second new producer has the id of the second former one, which continues with its second number.
        sent = [event("a") for _ in range(5)]
        new = [broker.sink(20), broker.sink(20)]
        for sink, each in zip([new[0], new[0], new[1], new[1], former[1]], sent, strict=True):
            await sink.send([each])
        assert _offsets(broker.url) == len(sent)
    finally:
        broker.server.kill()


def _offsets(bootstrap: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
    ends = [consumer.get_watermark_offsets(TopicPartition(TOPIC, each), timeout=60)[1] for each in range(PARTITIONS)]
    consumer.close()
    return sum(ends)


async def test_full_stream_keeps_events_waiting_and_gets_them_in_order_when_it_has_room(
    database: Database, tmp_path: Path
) -> None:
    """A full stream is no refusal: its events must not become dead letters."""
    broker = await asyncio.to_thread(Broker, "nats", tmp_path, max_msgs=25, discard=DiscardPolicy.NEW)
    try:
        async with _delivering(database, broker.sink()) as counts:
            sent = await _put(database, 60, "nats")
            async with asyncio.timeout(_SECONDS):
                while "unavailable" not in counts.failures:
                    await asyncio.sleep(0.05)
            assert await count_waiting(database, "nats") >= 60 - 25
            await prepare_nats(broker.url, max_msgs=-1, discard=DiscardPolicy.NEW)
            await _delivered(database, "nats")
        assert _in_order(await broker.read(), sent)
        assert "refused" not in counts.failures
    finally:
        broker.server.kill()


async def test_slow_broker_delays_only_its_own_events_and_gets_each_in_order(
    database: Database, tmp_path: Path
) -> None:
    """Answers later than the timeout leave unknown outcomes: events are sent again with their ids."""
    for kind in ("nats", "kafka"):
        (tmp_path / kind).mkdir()
    slow = await asyncio.to_thread(Broker, "nats", tmp_path / "nats")
    quick = await asyncio.to_thread(Broker, "kafka", tmp_path / "kafka")
    proxy = Toxic(slow.server.port)
    try:
        proxy.delay = 3.0
        proxy.become(DELAYED)
        behind = NatsSink("nats", NatsTarget(url=f"nats://127.0.0.1:{proxy.port}", subject=SUBJECT, timeout=1))
        async with _delivering(database, behind, quick.sink(20)) as counts:
            sent = await _put(database, 40, "nats", "kafka")
            await _delivered(database, "kafka")
            assert await count_waiting(database, "nats") == 40
            async with asyncio.timeout(_SECONDS):
                while "unavailable" not in counts.failures:
                    await asyncio.sleep(0.05)
            proxy.become(WELL)
            await _delivered(database, "nats")
        assert _in_order(await slow.read(), sent)
        assert _in_order(await quick.read(), sent)
    finally:
        proxy.close()
        slow.server.kill()
        quick.server.kill()


async def test_event_of_two_megabytes_is_a_dead_letter_and_the_others_arrive(
    broker: Broker, database: Database, parts: Parts
) -> None:
    """An event that blocks its sink for ever would keep all later ones waiting."""
    sent = await _put(database, 9, broker.kind)
    async with database.transaction() as connection:
        await connection.execute(
            text("update events set data = convert_to(to_json(repeat('x', 2000000))::text, 'UTF8') where id = :id"),
            {"id": sent[4][1]},
        )
    async with _delivering(database, broker.sink(20)) as counts:
        await _delivered(database, broker.kind)
    assert counts.failures == ["refused"]
    assert _in_order(await broker.read(), [each for each in sent if each != sent[4]])
    listed = await asyncio.to_thread(_lakegate, parts, broker, "dead-letters")
    assert sent[4][1] in listed and len(listed.splitlines()) == 1


async def test_clock_that_steps_back_changes_no_order(broker: Broker, database: Database) -> None:
    """Ids and times of an hour ago come after those of now; the sequence of PostgreSQL decides."""
    now = uuid7().int >> 80
    sent: list[tuple[str, str]] = []
    for number in range(30):
        hours = number // 10
        keys = [_KEYS[number % 3]]
        (id,) = await put_committed(database, keys, broker.kind)
        earlier = UUID(int=(now - hours * 3_600_000 << 80) | (UUID(id).int & (1 << 80) - 1))
        async with database.transaction() as connection:
            await connection.execute(
                text("update events set id = :new, at = at - cast(:back as interval) where id = :id"),
                {"new": earlier, "back": timedelta(hours=hours), "id": id},
            )
        sent.append((keys[0], str(earlier)))
    async with _delivering(database, broker.sink(20)):
        await _delivered(database, broker.kind)
    stored = await broker.read()
    assert _in_order(stored, sent)
    assert [id for _, id in sent] != sorted(id for _, id in sent)
