# SPDX-License-Identifier: Apache-2.0
"""Kill deliverers, NATS and Kafka and cut networks at random during delivery: `make test-events-faults`.

It prints a table, and fails if an event is lost, comes out of the order of its key, or has an unknown id.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import nats
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from nats.js.api import ConsumerConfig, DeliverPolicy, StreamConfig

from gateway.db.engine import Database
from gateway.embedded.supervisor import die_with_parent
from gateway.events.kafka import KafkaSink, KafkaTarget
from gateway.events.nats import NatsSink, NatsTarget
from gateway.events.port import EventSink
from gateway.tasks.event_delivery import EventDelivery, Pace
from gateway.telemetry.metrics import Metrics
from tests import kafka_server, nats_server
from tests.integration.event_outbox import count_waiting, put_committed
from tests.integration.parts import running_parts
from tests.integration.toxic import GONE, WELL, Toxic

_TOPIC = "lakegate-events"
_SUBJECT = "lakegate.events"
_PARTITIONS = 3
_KEYS = 500
_AT_ONCE = 500
_SINKS = ("nats", "kafka")
_KINDS = ("deliverer", "kafka", "nats", "network")
_SECONDS = 1800.0


@dataclass
class Faults:
    """The running servers, and the number of each fault."""

    nats: nats_server.NatsServer
    kafka: kafka_server.KafkaServer
    proxies: Sequence[Toxic]
    command: Sequence[str]
    deliverers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    upcoming: list[str] = field(default_factory=list)

    def start_deliverer(self) -> None:
        """Start a process that delivers to both sinks."""
        process = subprocess.Popen(self.command, preexec_fn=die_with_parent(signal.SIGKILL))
        self.deliverers.append(process)

    def one(self, chance: random.Random) -> None:
        """Cause one fault, and repair it. Each kind comes once in four faults, in random order."""
        if not self.upcoming:
            self.upcoming = chance.sample(_KINDS, len(_KINDS))
        kind = self.upcoming.pop()
        self.counts[kind] += 1
        if kind == "deliverer":
            victim = self.deliverers.pop(chance.randrange(len(self.deliverers)))
            victim.kill()
            victim.wait()
            self.start_deliverer()
        elif kind == "network":
            for proxy in self.proxies:
                proxy.become(GONE)
            time.sleep(chance.uniform(0.2, 2.0))
            for proxy in self.proxies:
                proxy.become(WELL)
        else:
            server = self.nats if kind == "nats" else self.kafka
            server.kill()
            time.sleep(chance.uniform(0.1, 1.0))
            server.start()


@dataclass(frozen=True)
class Result:
    """Count what a broker has: events, messages, lost and unknown ids, and keys that first arrived out of order."""

    sink: str
    messages: int
    duplicates: int
    lost: int
    unknown: int
    disordered: int

    @property
    def right(self) -> bool:
        """Return True if nothing is lost, unknown or out of order."""
        return not (self.lost or self.unknown or self.disordered)


def judge(sink: str, expected: Sequence[tuple[str, str]], stored: Sequence[tuple[str, str]]) -> Result:
    """Compare the (key, id) of all events in the order of their sequence with those of the broker."""
    known = {id for _, id in expected}
    firsts = list(dict.fromkeys(stored))
    arrived = {id for _, id in firsts}
    wanted, found = _by_key(expected), _by_key(firsts)
    return Result(
        sink=sink,
        messages=len(stored),
        duplicates=len(stored) - len(firsts),
        lost=len(known - arrived),
        unknown=len(arrived - known),
        disordered=sum(found.get(key, []) != ids for key, ids in wanted.items()),
    )


def _by_key(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, id in pairs:
        found.setdefault(key, []).append(id)
    return found


async def deliver(database_url: str, nats_url: str, bootstrap: str) -> None:
    """Deliver to both sinks until the process is killed."""
    database = Database(database_url, pool_size=5, acquire_timeout=10)
    sinks: tuple[EventSink, ...] = (
        NatsSink("nats", NatsTarget(url=nats_url, subject=_SUBJECT, timeout=5)),
        KafkaSink("kafka", KafkaTarget(bootstrap=bootstrap, topic=_TOPIC, timeout=10)),
    )
    pace = Pace(batch=200, every=0.2, call=120, min_backoff=0.1, max_backoff=2)
    observer = Metrics().events
    await asyncio.gather(*(EventDelivery(database, sink, observer=observer, pace=pace).run() for sink in sinks))


async def _prepare(nats_url: str, bootstrap: str) -> None:
    client = await nats.connect(nats_url)
    await client.jetstream().add_stream(StreamConfig(name="events", subjects=[_SUBJECT]))
    await client.close()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(_TOPIC, num_partitions=_PARTITIONS, replication_factor=1)
    await asyncio.to_thread(admin.create_topics([topic])[_TOPIC].result, 60)


async def _write(database: Database, count: int, expected: list[tuple[str, str]]) -> None:
    """Commit `count` events in groups, and add their (key, id) in order."""
    while len(expected) < count:
        keys = [f"key-{(len(expected) + number) % _KEYS}" for number in range(min(_AT_ONCE, count - len(expected)))]
        ids = await put_committed(database, keys, *_SINKS)
        expected.extend(zip(keys, ids, strict=True))
        await asyncio.sleep(0.1)


async def _read_nats(url: str) -> list[tuple[str, str]]:
    client = await nats.connect(url)
    stream = client.jetstream()
    left = (await stream.stream_info("events")).state.messages
    config = ConsumerConfig(deliver_policy=DeliverPolicy.ALL, max_ack_pending=100_000_000)
    subscription = await stream.pull_subscribe(_SUBJECT, config=config)
    found: list[tuple[str, str]] = []
    while left > len(found):
        for message in await subscription.fetch(min(500, left - len(found)), timeout=60):
            event = msgspec.json.decode(message.data, type=dict[str, object])
            found.append((str(event["tabularid"]), str(event["id"])))
            await message.ack()
    await client.close()
    return found


def _read_kafka(bootstrap: str) -> list[tuple[str, str]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    found: list[tuple[str, str]] = []
    for number in range(_PARTITIONS):
        _, end = consumer.get_watermark_offsets(TopicPartition(_TOPIC, number), timeout=60)
        consumer.assign([TopicPartition(_TOPIC, number, 0)])
        position = 0
        while position < end:
            message = consumer.poll(60)
            assert message is not None and message.error() is None
            pairs: object = message.headers()
            headers = dict(pairs) if isinstance(pairs, list) else {}
            key = message.key()
            found.append((key.decode() if isinstance(key, bytes) else str(key), str(headers["ce_id"], "utf-8")))
            position = (message.offset() or 0) + 1
    consumer.close()
    return found


async def _run(database_url: str, faults: Faults, count: int, chance: random.Random, pause: float) -> list[Result]:
    database = Database(database_url, pool_size=5, acquire_timeout=60)
    expected: list[tuple[str, str]] = []
    writing = asyncio.create_task(_write(database, count, expected))
    deadline = time.monotonic() + _SECONDS
    while not writing.done() or any([await count_waiting(database, sink) for sink in _SINKS]):
        assert time.monotonic() < deadline, "events still wait at the deadline"
        await asyncio.sleep(chance.uniform(pause / 2, pause))
        if not writing.done() or max([await count_waiting(database, sink) for sink in _SINKS]) > count // 50:
            await asyncio.to_thread(faults.one, chance)
    await writing
    await database.close()
    nats_found = await _read_nats(faults.nats.url)
    kafka_found = await asyncio.to_thread(_read_kafka, faults.kafka.bootstrap)
    return [judge("nats", expected, nats_found), judge("kafka", expected, kafka_found)]


def run(count: int, seed: int, pause: float) -> bool:
    """Run all servers, deliver `count` events with random faults, and print the result. Return True if it is right.

    `pause` is the longest time in seconds between two faults.
    """
    began = time.monotonic()
    with ExitStack() as stack:
        parts = stack.enter_context(running_parts())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        for name in _SINKS:
            (folder / name).mkdir()
        proxies = [Toxic(0), Toxic(0)]
        nats_running = nats_server.NatsServer(folder / "nats")
        kafka = kafka_server.KafkaServer(folder / "kafka", advertised=proxies[1].port)
        servers: tuple[nats_server.NatsServer | kafka_server.KafkaServer, ...] = (nats_running, kafka)
        for proxy, server in zip(proxies, servers, strict=True):
            proxy.target = server.port
            stack.callback(proxy.close)
            stack.callback(server.kill)
            server.start()
        bootstrap = f"127.0.0.1:{proxies[1].port}"
        asyncio.run(_prepare(nats_running.url, bootstrap))
        addresses = (parts.database_url, f"nats://127.0.0.1:{proxies[0].port}", bootstrap)
        command = [sys.executable, "-m", "tests.event_faults", "--deliver", *addresses]
        faults = Faults(nats=nats_running, kafka=kafka, proxies=proxies, command=command)
        for _ in range(2):
            faults.start_deliverer()
        try:
            results = asyncio.run(_run(parts.database_url, faults, count, random.Random(seed), pause))
        finally:
            for process in faults.deliverers:
                process.kill()
                process.wait()
    _print(results, faults, count, seed, time.monotonic() - began)
    return all(result.right for result in results)


def _print(results: Sequence[Result], faults: Faults, count: int, seed: int, seconds: float) -> None:
    shown = ", ".join(f"{kind} {number}" for kind, number in sorted(faults.counts.items()))
    print(f"{count} events, seed {seed}, {seconds:.0f} s; faults: {shown}\n")
    print("| sink | messages | duplicates by id | lost | unknown | keys out of order |\n|---|---|---|---|---|---|")
    for each in results:
        print(
            f"| {each.sink} | {each.messages} | {each.duplicates} | {each.lost} | {each.unknown} | {each.disordered} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deliver", nargs=3, metavar=("DATABASE", "NATS", "KAFKA"), help=argparse.SUPPRESS)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=8.0, help="longest time in seconds between two faults")
    chosen = parser.parse_args()
    if chosen.deliver:
        asyncio.run(deliver(*chosen.deliver))
    sys.exit(0 if run(chosen.events, chosen.seed, chosen.pause) else 1)
