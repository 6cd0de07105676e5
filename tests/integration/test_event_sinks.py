# SPDX-License-Identifier: Apache-2.0
"""Event sinks with a real NATS server and a real Kafka broker: order, duplicates, refusal, kills and full streams."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import nats
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, StreamConfig

from gateway.assembly.events import open_sink
from gateway.events.kafka import KafkaSink, KafkaTarget
from gateway.events.nats import NatsSink, NatsTarget
from gateway.events.port import Event, EventRefused, EventSink, SinkUnavailable
from gateway.settings import load
from gateway.tls import trusted
from lakegate.conformance.rules import ConformanceError
from tests.support.rows.event_sink_kit import Stored, conforms, event
from tests.support.servers import kafka_server, nats_server

pytestmark = [pytest.mark.integration, pytest.mark.servers]
PARTITIONS = 3


@pytest.fixture
def nats_running(tmp_path: Path) -> Iterator[nats_server.NatsServer]:
    with nats_server.running(tmp_path) as server:
        yield server


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka_server.KafkaServer]:
    with kafka_server.running(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@asynccontextmanager
async def _jetstream(server: nats_server.NatsServer) -> AsyncIterator[JetStreamContext]:
    client = await nats.connect(server.url)
    try:
        yield client.jetstream()
    finally:
        await client.close()


async def _stream(server: nats_server.NatsServer, **options: object) -> None:
    async with _jetstream(server) as stream:
        await stream.add_stream(StreamConfig(name="events", subjects=["lakegate.events"], **options))  # type: ignore[arg-type]  # plain values of the fields


async def _read_nats(server: nats_server.NatsServer) -> Stored:
    async with _jetstream(server) as stream:
        state = (await stream.stream_info("events")).state
        messages = [await stream.get_msg("events", seq=number + 1) for number in range(state.messages)]
    decoded = [msgspec.json.decode(message.data or b"", type=dict[str, object]) for message in messages]
    return [(str(found["tabularid"]), str(found["id"])) for found in decoded]


def _nats_sink(server: nats_server.NatsServer, timeout: float = 10) -> NatsSink:
    return NatsSink("nats", NatsTarget(url=server.url, subject="lakegate.events", timeout=timeout))


def _kafka_sink(server: kafka_server.KafkaServer, topic: str, timeout: float = 20) -> KafkaSink:
    return KafkaSink("kafka", KafkaTarget(bootstrap=server.bootstrap, topic=topic, timeout=timeout))


async def _topic(server: kafka_server.KafkaServer, name: str, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    wanted = NewTopic(name, num_partitions=PARTITIONS, replication_factor=1, config=config)
    await asyncio.to_thread(admin.create_topics([wanted])[name].result, 60)


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""


def _pairs(headers: object) -> list[tuple[str, str | bytes | None]]:
    return headers if isinstance(headers, list) else []


def _read_kafka_now(server: kafka_server.KafkaServer, topic: str) -> Stored:
    consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": "reader", "enable.auto.commit": False})
    found: dict[str, str] = {}
    for number in range(PARTITIONS):
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=60)
        consumer.assign([TopicPartition(topic, number, 0)])
        while end:
            message = consumer.poll(60)
            assert message is not None and message.error() is None
            headers = {name: _bytes(value) for name, value in _pairs(message.headers())}
            assert headers["ce_specversion"] == b"1.0" and headers["content-type"] == b"application/json"
            found.setdefault(str(headers["ce_id"], "utf-8"), str(_bytes(message.key()), "utf-8"))
            if (message.offset() or 0) + 1 >= end:
                break
    consumer.close()
    return [(key, event_id) for event_id, key in found.items()]


async def _read_kafka(server: kafka_server.KafkaServer, topic: str) -> Stored:
    return await asyncio.to_thread(_read_kafka_now, server, topic)


async def test_nats_sink_conforms(nats_running: nats_server.NatsServer) -> None:
    await _stream(nats_running)
    sink = _nats_sink(nats_running)
    await conforms(sink, lambda: _read_nats(nats_running))
    await sink.close()


async def test_kafka_sink_conforms(kafka: kafka_server.KafkaServer) -> None:
    await _topic(kafka, "conformance")
    sink = _kafka_sink(kafka, "conformance")
    await conforms(sink, lambda: _read_kafka(kafka, "conformance"))
    await sink.close()


async def test_sinks_of_the_settings_store_events(
    nats_running: nats_server.NatsServer, kafka: kafka_server.KafkaServer
) -> None:
    """A field that the factory passes wrongly would leave the sink without its server or its topic."""
    await _stream(nats_running)
    await _topic(kafka, "of-settings")
    variables = {
        "BUS__KIND": "nats", "BUS__URL": nats_running.url, "BUS__SUBJECT": "lakegate.events",
        "LAKE__KIND": "kafka", "LAKE__BOOTSTRAP": kafka.bootstrap, "LAKE__TOPIC": "of-settings",
        "LAKE__OPTIONS": "compression.type=gzip, security.protocol=PLAINTEXT", "LAKE__TIMEOUT": "20s",
    }  # fmt: skip
    settings = load({f"LAKEGATE__EVENTS__SINKS__{name}": value for name, value in variables.items()})
    settings.events.require_usable()
    sent = event("key")
    for name, configured in settings.events.sinks.items():
        sink = open_sink(name, configured, trusted(None, None))
        assert sink.name == name
        await sink.check()
        await sink.send([sent])
        await sink.close()
    assert await _read_nats(nats_running) == [("key", str(sent.id))]
    assert await _read_kafka(kafka, "of-settings") == [("key", str(sent.id))]


class _Reversed:
    """A wrong sink: it does not keep the order."""

    name = "wrong"

    def __init__(self, inner: EventSink) -> None:
        self._inner = inner

    async def send(self, events: Sequence[Event]) -> None:
        await self._inner.send(events[::-1])

    async def check(self) -> None:
        await self._inner.check()

    async def close(self) -> None:
        await self._inner.close()


async def test_conformance_kit_rejects_a_sink_without_order(nats_running: nats_server.NatsServer) -> None:
    await _stream(nats_running)
    sink = _Reversed(_nats_sink(nats_running))
    with pytest.raises(ConformanceError, match="order of their key"):
        await conforms(sink, lambda: _read_nats(nats_running))
    await sink.close()


async def test_nats_without_a_stream_or_with_a_full_one_is_unavailable(nats_running: nats_server.NatsServer) -> None:
    sink = _nats_sink(nats_running)
    with pytest.raises(SinkUnavailable):
        await sink.check()
    with pytest.raises(SinkUnavailable):
        await sink.send([event("a")])
    await _stream(nats_running, max_bytes=100_000, discard=DiscardPolicy.NEW)
    await sink.send([event("a")])
    with pytest.raises(SinkUnavailable, match="maximum bytes"):
        await sink.send([event("a", 50_000), event("a", 50_000)])
    await sink.close()


async def test_kafka_without_the_topic_is_unavailable(kafka: kafka_server.KafkaServer) -> None:
    sink = _kafka_sink(kafka, "missing", timeout=3)
    with pytest.raises(SinkUnavailable):
        await sink.check()
    with pytest.raises(SinkUnavailable):
        await sink.send([event("a")])
    await sink.close()


async def test_broker_that_refuses_one_event_of_a_batch_stores_the_others(kafka: kafka_server.KafkaServer) -> None:
    await _topic(kafka, "small", **{"max.message.bytes": "2000"})
    sink = _kafka_sink(kafka, "small")
    first, large, last = event("a"), event("b", 5000), event("c")
    with pytest.raises(EventRefused) as refused:
        await sink.send([first, large, last])
    assert refused.value.event_id == large.id
    assert {event_id for _, event_id in await _read_kafka(kafka, "small")} == {str(first.id), str(last.id)}
    await sink.close()


async def _send_until_killed(sink: EventSink, kill: asyncio.Event) -> list[Event]:
    """Send until the sink is unavailable; return the acknowledged events."""
    stored: list[Event] = []
    while True:
        batch = [event(f"key-{number % 3}") for number in range(10)]
        try:
            await sink.send(batch)
        except SinkUnavailable:
            return stored
        stored += batch
        if len(stored) >= 100:
            kill.set()


@pytest.mark.parametrize("kind", ["nats", "kafka"])
async def test_killed_server_loses_nothing_acknowledged(kind: str, tmp_path: Path) -> None:
    server: nats_server.NatsServer | kafka_server.KafkaServer
    server = nats_server.NatsServer(tmp_path) if kind == "nats" else kafka_server.KafkaServer(tmp_path)
    server.start()
    try:
        sink: EventSink
        if isinstance(server, nats_server.NatsServer):
            await _stream(server)
            sink = _nats_sink(server, timeout=5)
        else:
            await _topic(server, "killed")
            sink = _kafka_sink(server, "killed", timeout=5)
        kill = asyncio.Event()
        sending = asyncio.create_task(_send_until_killed(sink, kill))
        await asyncio.wait_for(kill.wait(), 100)
        await asyncio.to_thread(server.kill)
        acknowledged = await asyncio.wait_for(sending, 100)
        await asyncio.to_thread(server.start)
        after = event("after")
        async with asyncio.timeout(100):
            while True:
                try:
                    await sink.send([after])
                    break
                except SinkUnavailable:
                    await asyncio.sleep(0.2)
        if isinstance(server, nats_server.NatsServer):
            found = await _read_nats(server)
        else:
            found = await _read_kafka(server, "killed")
        ids = {event_id for _, event_id in found}
        assert {str(sent.id) for sent in [*acknowledged, after]} <= ids
        await sink.close()
    finally:
        server.kill()


@pytest.mark.parametrize("kind", ["nats", "kafka"])
async def test_server_that_never_answers_is_unavailable_in_time(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        sink: EventSink = KafkaSink("k", KafkaTarget(bootstrap=f"127.0.0.1:{port}", topic="t", timeout=1))
        if kind == "nats":
            sink = NatsSink("n", NatsTarget(url=f"nats://127.0.0.1:{port}", subject="s", timeout=1))
        async with asyncio.timeout(60):
            with pytest.raises(SinkUnavailable):
                await sink.send([event("a")])
            with pytest.raises(SinkUnavailable):
                await sink.check()
        await sink.close()
