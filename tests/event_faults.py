# SPDX-License-Identifier: Apache-2.0
"""Change a catalog through two gateways while gateways, NATS, Kafka and networks fail: `make test-events-faults`.

Both gateways deliver the change events to both brokers. Afterwards the brokers are compared with the catalog. The run
prints a table, and fails if an event is lost, has no change, comes out of the order of its object, or still waits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from uuid import UUID

from gateway.access.events.event_building import event_id
from lakegate.local.ready import Ready
from tests.integration.conftest import _up
from tests.support.load.event_brokers import (
    SUBJECT,
    TOPIC,
    Result,
    judge,
    prepare_kafka,
    prepare_nats,
    read_kafka,
    read_nats,
)
from tests.support.load.event_changes import PATIENCE, Channel, Shared, Step, Tally, Writer, state_of
from tests.support.load.kills import Killable
from tests.support.rows.parts import free_port
from tests.support.servers import kafka_server, nats_server
from tests.support.servers.toxic import GONE, WELL, Toxic
from tests.support.stack.world import World

KINDS = ("gateway", "gateways", "worker", "database", "network", "nats", "kafka")
"""One gateway, both at once, one worker process, the connections of one gateway to PostgreSQL, those of both gateways
to the brokers, and each broker.
"""

_APPENDERS = 2
_OPERATIONS = (
    "create_namespace", "update_namespace_properties", "drop_namespace",
    "create_table", "commit_table", "rename_table", "drop_table",
)  # fmt: skip


class _OnPort(Killable):
    """Another gateway of the same stack. Start it before anything else."""

    def __init__(self, ready: Ready, log: Path) -> None:
        super().__init__(ready, log)
        port = free_port()
        self.base = f"http://127.0.0.1:{port}"
        moved = {"LISTEN_PORT": port, "METRICS__PORT": free_port(), "BASE_URI": self.base}
        self._environment |= {f"LAKEGATE__{name}": str(value) for name, value in moved.items()}


@dataclass
class Faults:
    """The running servers, and the number of each fault."""

    gateways: Sequence[Killable]
    settings: Sequence[dict[str, str]]
    nats: nats_server.NatsServer
    kafka: kafka_server.KafkaServer
    networks: Sequence[Toxic]
    database: Toxic
    longest_cut: float
    counts: Counter[str] = field(default_factory=Counter)
    upcoming: list[str] = field(default_factory=list)

    def start(self, *numbers: int) -> None:
        """Start these gateways with their sinks, at once."""
        for number in numbers:
            self.gateways[number].begin(**self.settings[number])
        for number in numbers:
            self.gateways[number].serves()

    def one(self, chance: random.Random) -> None:
        """Cause one fault, and repair it. Each kind comes once before any comes again, in random order."""
        if not self.upcoming:
            self.upcoming = chance.sample(KINDS, len(KINDS))
        kind = self.upcoming.pop()
        self.counts[kind] += 1
        chosen = chance.randrange(len(self.gateways))
        cut = chance.uniform(0.2, self.longest_cut)
        match kind:
            case "gateway":
                self.gateways[chosen].kill()
                self.start(chosen)
            case "gateways":
                for gateway in self.gateways:
                    gateway.kill()
                self.start(*range(len(self.gateways)))
            case "worker":
                self.gateways[chosen].kill_worker(chance)
            case "database" | "network":
                cut_off = [self.database] if kind == "database" else self.networks
                for proxy in cut_off:
                    proxy.become(GONE)
                time.sleep(cut)
                for proxy in cut_off:
                    proxy.become(WELL)
            case _:
                server = self.nats if kind == "nats" else self.kafka
                server.kill()
                time.sleep(cut)
                server.start()


@dataclass(frozen=True)
class Outcome:
    """The figures of a run, and the faults of each kind. `refused` has the changes that a gateway refused."""

    events: int
    seed: int
    seconds: float
    writing_seconds: float
    faults: dict[str, int]
    answers: dict[int, int]
    types: dict[str, int]
    refused: list[str]
    sinks: str
    results: list[Result]

    @property
    def right(self) -> bool:
        """Return True if each broker has exactly the events of the changes, and none waits."""
        empty = re.fullmatch(r"(\w+: waiting 0, oldest 0 s, dead letters 0\n){2}", self.sinks)
        return not self.refused and empty is not None and all(result.right for result in self.results)


@contextmanager
def running_faults(folder: Path, longest_cut: float) -> Iterator[tuple[World, Faults]]:
    """Run a stack with two gateways that deliver to NATS and Kafka, each behind a proxy."""
    with ExitStack() as held:
        world = World(held.enter_context(_up()))
        held.callback(world.close)
        proxies = [Toxic(0), Toxic(0), Toxic(int(re.findall(r":(\d+)/", world.ready.postgres)[0]))]
        for name in ("nats", "kafka"):
            (folder / name).mkdir()
        to_nats = nats_server.NatsServer(folder / "nats")
        kafka = kafka_server.KafkaServer(folder / "kafka", advertised=proxies[1].port)
        proxies[0].target, proxies[1].target = to_nats.port, kafka.port
        for proxy in proxies:
            held.callback(proxy.close)
        servers: tuple[nats_server.NatsServer | kafka_server.KafkaServer, ...] = (to_nats, kafka)
        for server in servers:
            held.callback(server.kill)
            server.start()
        bootstrap = f"127.0.0.1:{proxies[1].port}"
        asyncio.run(prepare_nats(to_nats.url))
        asyncio.run(prepare_kafka(bootstrap))
        gateways = (Killable(world.ready, folder / "first.log"), _OnPort(world.ready, folder / "second.log"))
        settings = _settings(f"nats://127.0.0.1:{proxies[0].port}", bootstrap)
        by_proxy = world.ready.postgres.replace(f":{proxies[2].target}/", f":{proxies[2].port}/")
        faults = Faults(
            gateways=gateways,
            settings=(settings, settings | {"PG_DATABASE_URL_WRITE": by_proxy}),
            nats=to_nats,
            kafka=kafka,
            networks=proxies[:2],
            database=proxies[2],
            longest_cut=longest_cut,
        )
        gateways[0].kill()
        for gateway in gateways:
            held.callback(gateway.close)
        faults.start(0, 1)
        yield world, faults


def _settings(nats_url: str, bootstrap: str) -> dict[str, str]:
    of_sinks = {
        "NATS__KIND": "nats", "NATS__URL": nats_url, "NATS__SUBJECT": SUBJECT, "NATS__TIMEOUT": "5s",
        "KAFKA__KIND": "kafka", "KAFKA__BOOTSTRAP": bootstrap, "KAFKA__TOPIC": TOPIC, "KAFKA__TIMEOUT": "10s",
    }  # fmt: skip
    named = {f"EVENTS__SINKS__{name}": value for name, value in of_sinks.items()}
    return named | {"EVENTS__MIN_BACKOFF": "100ms", "EVENTS__MAX_BACKOFF": "2s", "WORKERS": "1"}


class Load:
    """All clients of a run, each in a thread."""

    def __init__(self, world: World, bases: Sequence[str], seed: int, writers: int) -> None:
        # The tokens of the stack end after an hour.
        token = world.person_with("admin", exp=int(time.time()) + 6 * 3600).token
        self.tally = Tally()
        self.root = world.root
        self._over = threading.Event()
        self._broken: list[BaseException] = []
        self._channel: Callable[[int], Channel] = lambda turn: Channel(
            [*bases[turn % len(bases) :], *bases[: turn % len(bases)]], token, self.tally
        )
        homes = [world.namespace() for _ in range(2)]
        self._homes = [world.namespace_id(home) for home in homes]
        self.shared = Shared(world.root, homes[0])
        self.writers = [
            Writer(self._channel(number), world.root, f"w{number}", homes[number % 2], seed * 1000 + number)
            for number in range(writers)
        ]
        work: list[Callable[[], None]] = [partial(writer.run, self._over) for writer in self.writers]
        for turn in range(_APPENDERS):
            work.append(partial(self.shared.append, self._channel(turn), self._over, 0.4))
        self._threads = [threading.Thread(target=self._guarded, args=(each,), daemon=True) for each in work]
        for thread in self._threads:
            thread.start()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._broken.append(error)
            raise

    def end(self, world: World) -> None:
        """Stop the clients, and wait until they know each outcome."""
        self._over.set()
        # No gateway is killed any more, so the keys of killed requests need not wait for the end of their lease.
        world.sql("update idempotency set expires_at = now() where status is null")
        for thread in self._threads:
            thread.join(PATIENCE + 60)
            assert not thread.is_alive(), "a client did not end"
        assert not self._broken, self._broken

    def alive(self) -> bool:
        """Return True if no client ended by an error."""
        return not self._broken

    def expected(self) -> dict[str, list[Step]]:
        """Return the changes of each object in order, after a comparison with the catalog."""
        channel = self._channel(0)
        found = self.shared.steps(channel) | {home: [("createNamespace", "")] for home in self._homes}
        for writer in self.writers:
            state_of(self.root, channel, writer.things)
            found |= {thing.id: thing.steps for thing in writer.things if thing.id}
        channel.close()
        return found


def run(
    count: int, seed: int, pause: float, *, minutes: float = math.inf, longest_cut: float = 12.0, writers: int = 10
) -> Outcome:
    """Make at least `count` changes with random faults, and return the comparison of brokers and catalog.

    `pause` is the longest time in seconds between two faults. Each kind of fault comes at least once.
    After `minutes` the run ends with fewer changes.
    """
    began = time.monotonic()
    chance = random.Random(seed)
    with ExitStack() as held:
        folder = held.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        world, faults = held.enter_context(running_faults(Path(folder), longest_cut))
        before = _records(world)
        load = Load(world, [gateway.base for gateway in faults.gateways], seed, writers)
        until = began + 60 * minutes
        while load.alive() and (
            (load.tally.changes < count and time.monotonic() < until) or len(faults.counts) < len(KINDS)
        ):
            time.sleep(chance.uniform(pause / 2, pause))
            faults.one(chance)
            waiting = world.sql("select sink, count(*) as n from event_deliveries group by sink")
            print(
                f"{time.monotonic() - began:.0f} s: {load.tally.changes} changes, waiting "
                f"{ {row['sink']: row['n'] for row in waiting} }, faults {dict(faults.counts)}",
                flush=True,
            )
        load.end(world)
        writing = time.monotonic() - began
        expected = load.expected()
        _until_delivered(world)
        sinks = faults.gateways[0].run("events", "sinks", **_prefixed(faults.settings[0])).stdout
        recorded = {str(event_id(id, 0)) for id in _records(world) - before}
        listed = {str(row["id"]) for row in world.sql("select id from events")}
        stored = {"nats": asyncio.run(read_nats(faults.nats.url)), "kafka": read_kafka(faults.kafka.bootstrap)}
        assert listed >= {each.id for found in stored.values() for each in found}
        types = Counter(step[0] for steps in expected.values() for step in steps)
        return Outcome(
            events=sum(types.values()),
            seed=seed,
            seconds=round(time.monotonic() - began),
            writing_seconds=round(writing),
            faults=dict(sorted(faults.counts.items())),
            answers=dict(sorted(load.tally.answers.items())),
            types=dict(sorted(types.items())),
            refused=[text for writer in load.writers for text in writer.refused],
            sinks=sinks,
            results=[judge(sink, expected, recorded, found) for sink, found in stored.items()],
        )


def _prefixed(settings: dict[str, str]) -> dict[str, str]:
    return {f"LAKEGATE__{name}": value for name, value in settings.items()}


def _records(world: World) -> set[UUID]:
    """Return the ids of the audit records of changes, each of which was committed with its change."""
    rows = world.sql(
        "select id, record from audit_log where outcome = 'allowed' and operation = any($1)", list(_OPERATIONS)
    )
    details = {row["id"]: json.loads(row["record"]).get("detail", {}) for row in rows}
    # Requests that failed or had their effect before have a record and no change. So have credentials of new tables.
    return {
        id
        for id, detail in details.items()
        if detail.get("result") != "failed" and detail.get("repeated") != "true" and "vended" not in detail
    }


def _until_delivered(world: World) -> None:
    deadline = time.monotonic() + PATIENCE
    while world.sql("select 1 from event_deliveries limit 1"):
        assert time.monotonic() < deadline, "events still wait at the deadline"
        time.sleep(0.3)


def show(outcome: Outcome) -> str:
    """Return the figures as text with a table."""
    lines = [
        f"{outcome.events} events, seed {outcome.seed}",
        f"seconds: {outcome.writing_seconds} of changes, {outcome.seconds} in all",
        f"faults: {outcome.faults}",
        f"changes: {outcome.types}",
        f"answers (0: none): {outcome.answers}",
        f"refused: {outcome.refused[:10]}",
        outcome.sinks,
        "| sink | messages | duplicates by id | lost | no change | several ids | unequal duplicates | out of order |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += ["| " + " | ".join(str(value) for value in asdict(each).values()) + " |" for each in outcome.results]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=20.0, help="longest time in seconds between two faults")
    parser.add_argument("--minutes", type=float, default=math.inf, help="make no further changes after this time")
    chosen = parser.parse_args()
    finished = run(chosen.events, chosen.seed, chosen.pause, minutes=chosen.minutes)
    print(show(finished))
    sys.exit(0 if finished.right else 1)
