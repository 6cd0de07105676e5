# SPDX-License-Identifier: Apache-2.0
"""Change events of a running gateway: written with the change, delivered in order, and kept for a sink that is down."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from sqlalchemy import text
from uuid_utils.compat import uuid7

from gateway.db import event_deliveries
from gateway.db.engine import Database
from gateway.embedded.ready import Ready
from gateway.events.port import Event, EventRefused, SinkUnavailable
from gateway.tasks.event_delivery import EventCleaner, EventDelivery, Pace
from tests.contract.world import World
from tests.integration.kills import SOON, Killable
from tests.integration.parts import Parts, running_parts
from tests.lakegate_command import run_lakegate

pytestmark = pytest.mark.servers

SECRET = "a signing secret of the tests"


@pytest.fixture(scope="module")
def parts() -> Iterator[Parts]:
    with running_parts() as parts:
        yield parts


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    database = Database(parts.database_url, pool_size=5, acquire_timeout=10)
    async with database.transaction() as connection:
        await connection.execute(text("truncate events cascade"))
    yield database
    await database.close()


@dataclass
class Sink:
    """A sink in memory. `act` is called with each batch before it is stored, and may raise."""

    name: str = "memory"
    stored: list[Event] = field(default_factory=list)
    act: Callable[[Sequence[Event]], None] = lambda _: None
    pause: float = 0.0

    async def send(self, events: Sequence[Event]) -> None:
        self.act(events)
        for event in events:
            await asyncio.sleep(self.pause)
            self.stored.append(event)

    async def check(self) -> None:
        pass

    async def close(self) -> None:
        pass


class Counted:
    """Counts what a delivery reports."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def events_delivered(self, sink: str, count: int) -> None:
        pass

    def event_delivery_failed(self, sink: str, outcome: str) -> None:
        self.failures.append(outcome)

    def events_waiting(self, sink: str, *, waiting: int, oldest: float, dead_letters: int) -> None:
        pass


def _delivery(database: Database, sink: Sink, observer: Counted | None = None, batch: int = 10) -> EventDelivery:
    return EventDelivery(database, sink, observer=observer or Counted(), pace=Pace(batch=batch, send_seconds=20.0))


async def _write(
    database: Database, keys: Sequence[str], sinks: Sequence[str] = ("memory",), at: datetime | None = None
) -> None:
    async with database.transaction() as connection:
        await _insert(connection, keys, sinks, at)


async def _insert(connection: Any, keys: Sequence[str], sinks: Sequence[str], at: datetime | None = None) -> None:
    statement = text(
        """
        with written as (
            insert into events (id, at, type, source, key, attributes, data)
            select i, :at, 'updateTable', 'source', k, '{}'::jsonb, '{}'::bytea
            from unnest(cast(:ids as uuid[]), cast(:keys as text[])) with ordinality as e(i, k, place) order by place
            returning sequence)
        insert into event_deliveries select s, sequence from written cross join unnest(cast(:sinks as text[])) as s
        """
    )
    ids = [uuid7() for _ in keys]
    await connection.execute(
        statement, {"ids": ids, "keys": list(keys), "sinks": list(sinks), "at": at or datetime.now(UTC)}
    )


async def _state(database: Database, sink: str = "memory") -> tuple[int, int]:
    async with database.read() as connection:
        (state,) = [each for each in await event_deliveries.states(connection, [sink]) if each.sink == sink]
    return state.waiting, state.dead_letters


async def test_events_are_delivered_in_order_and_once_by_two_gateways(database: Database) -> None:
    await _write(database, [f"k{n % 3}" for n in range(95)])
    sink = Sink(pause=0.001)
    both = await asyncio.gather(*(_delivery(database, sink).deliver_all() for _ in range(2)))
    assert sum(both) == 95
    async with database.read() as connection:
        in_order = [event.id for event in await event_deliveries.recent(connection, after=0, limit=100)]
    assert [event.id for event in sink.stored] == in_order
    assert await _state(database) == (0, 0)


async def test_an_event_of_a_late_transaction_is_not_skipped(database: Database) -> None:
    """Its sequence is lower than that of events that were delivered before it was committed."""
    sink = Sink()
    async with database.transaction() as late:
        await _insert(late, ["late"], ["memory"])
        await _write(database, ["early"])
        await _delivery(database, sink).deliver_all()
        assert [event.key for event in sink.stored] == ["early"]
    await _delivery(database, sink).deliver_all()
    assert [event.key for event in sink.stored] == ["early", "late"]


async def test_a_refused_event_is_a_dead_letter_and_the_others_are_delivered(database: Database) -> None:
    await _write(database, ["a", "b", "c", "d"])
    sink, observer = Sink(), Counted()

    def refuse_c(events: Sequence[Event]) -> None:
        for place, event in enumerate(events):
            if event.key == "c":
                sink.stored.extend(events[:place])
                raise EventRefused(event.id, "too large")

    sink.act = refuse_c
    await _delivery(database, sink, observer).deliver_all()
    assert [event.key for event in sink.stored] == ["a", "b", "d"]
    assert observer.failures == ["refused"]
    async with database.read() as connection:
        (letter,) = await event_deliveries.dead_letters(connection, sink=None, limit=10)
    assert (letter.sink, letter.key, letter.reason) == ("memory", "c", "too large")
    sink.act = lambda _: None
    async with database.autocommit() as connection:
        assert await event_deliveries.retry_dead_letters(connection, "memory") == 1
    await _delivery(database, sink).deliver_all()
    assert sink.stored[-1].key == "c"
    assert await _state(database) == (0, 0)


async def test_a_sink_that_is_down_keeps_its_events_and_delays_no_other(database: Database) -> None:
    await _write(database, ["a", "b"], sinks=("memory", "other"))
    down, up, observer = Sink(), Sink(name="other"), Counted()

    def fail(_: Sequence[Event]) -> None:
        raise SinkUnavailable("no answer")

    down.act = fail
    assert await _delivery(database, down, observer).deliver_all() == 0
    assert await _delivery(database, up).deliver_all() == 2
    assert observer.failures == ["unavailable"]
    assert (await _state(database), await _state(database, "other")) == ((2, 0), (0, 0))
    down.act = lambda _: None
    assert await _delivery(database, down).deliver_all() == 2


async def test_a_sink_that_hangs_is_given_up(database: Database) -> None:
    await _write(database, ["a"])
    delivery = EventDelivery(database, Sink(pause=60.0), observer=Counted(), pace=Pace(send_seconds=0.2))
    assert await delivery.deliver_all() == 0
    assert await _state(database) == (1, 0)


async def test_old_events_are_removed_only_when_no_sink_needs_them(database: Database) -> None:
    old = datetime.now(UTC) - timedelta(days=8)
    await _write(database, ["needed", "delivered"], at=old)
    await _write(database, ["recent"])
    sink = Sink()
    cleaner = EventCleaner(database, keep_seconds=7 * 86400.0)
    assert await cleaner.clean() == 0
    await _delivery(database, sink).deliver_all()
    assert await cleaner.clean() == 2
    async with database.read() as connection:
        assert [event.key for event in await event_deliveries.recent(connection, after=0, limit=10)] == ["recent"]


async def test_a_replay_sends_stored_events_again_with_their_ids(database: Database) -> None:
    await _write(database, ["a", "b", "c"])
    sink = Sink()
    await _delivery(database, sink).deliver_all()
    first = [event.id for event in sink.stored]
    async with database.autocommit() as connection:
        stored = await event_deliveries.recent(connection, after=0, limit=10)
        assert await event_deliveries.replay(connection, ["memory"], sequence=stored[1].sequence) == 2
        assert await event_deliveries.replay(connection, ["memory"], sequence=stored[1].sequence) == 0
    await _delivery(database, sink).deliver_all()
    assert [event.id for event in sink.stored] == [*first, *first[1:]]


async def test_large_events_are_sent_in_small_batches(database: Database) -> None:
    await _write(database, ["a", "b", "c"])
    async with database.transaction() as connection:
        await connection.execute(text("update events set data = convert_to(repeat('x', 600), 'UTF8')"))
    async with database.read() as connection:
        first = await event_deliveries.waiting(connection, "memory", limit=10, most_bytes=500)
        two = await event_deliveries.waiting(connection, "memory", limit=10, most_bytes=1200)
    assert ([event.key for event in first], [event.key for event in two]) == (["a"], ["a", "b"])


class Receiver:
    """A webhook on loopback. It answers 503 until `works`, and keeps the events of requests with a right signature."""

    def __init__(self) -> None:
        self.works = False
        self.asked = 0
        self.events: list[dict[str, Any]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.asked += 1
                body = self.rfile.read(int(self.headers["content-length"]))
                signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + body
                expected = base64.b64encode(hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()).decode()
                if receiver.works and self.headers["webhook-signature"] == f"v1,{expected}":
                    receiver.events.append(json.loads(body))
                self.send_response(204 if receiver.works else 503)
                self.end_headers()

            def do_HEAD(self) -> None:
                self.send_response(405)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings of a sink `partner`."""
        at = "EVENTS__SINKS__PARTNER"
        url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        return {f"{at}__KIND": "webhook", f"{at}__URL": url, f"{at}__SIGNING_SECRET": SECRET}

    def types(self) -> list[str]:
        """Return the types of the received events, in order."""
        return [event["type"] for event in self.events]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


@pytest.fixture
def world(killed_stack: Ready) -> Iterator[World]:
    world = World(killed_stack)
    yield world
    world.close()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.1)


def test_a_change_is_announced_although_the_sink_and_the_gateway_failed_meanwhile(
    killed_stack: Ready, gateway: Killable, world: World, receiver: Receiver
) -> None:
    gateway.kill()
    gateway.start(**receiver.settings, EVENTS__LONGEST_PAUSE="1s")
    namespace = world.namespace()
    table = world.table(namespace)
    assert world.admin.post(table.path, {"requirements": [], "updates": []}).status_code == 200
    update = [{"action": "set-properties", "updates": {"a": "b"}}]
    assert world.admin.post(table.path, {"requirements": [], "updates": update}).status_code == 200
    world.grant("select", world.people["bob"], "table", table.uuid)
    assert world.admin.delete(table.path, params={"purgeRequested": "true"}).status_code == 204
    # A change that is refused announces nothing.
    assert world.people["alice"].delete(f"{world.root}/namespaces/{namespace}").status_code in (403, 404)
    _until(lambda: receiver.asked > 0)
    gateway.kill()
    receiver.works = True
    gateway.start(**receiver.settings, EVENTS__LONGEST_PAUSE="1s")
    expected = ["createNamespace", "createTable", "updateTable", "changeGrants", "dropTable"]
    _until(lambda: len({event["id"] for event in receiver.events}) >= len(expected))
    types = [event["type"] for event in {event["id"]: event for event in receiver.events}.values()]
    assert [type for type in types if type in expected or type == "dropNamespace"] == [
        *expected[:3], *(["updateTable"] if types.count("updateTable") == 2 else []), *expected[3:],
    ]  # fmt: skip
    (created,) = [event for event in receiver.events if event["type"] == "createTable"]
    assert created["tabularid"] == table.uuid
    assert created["data"]["name"] == created["name"] == table.name
    assert json.loads(created["actor"]) == {"type": "principal", "principal": world.admin.id}
    environment = {"LAKEGATE__PG_DATABASE_URL_WRITE": killed_stack.postgres} | {
        f"LAKEGATE__{name}": value for name, value in receiver.settings.items()
    }
    listed = run_lakegate("events", "sinks", environment=environment)
    assert listed.stdout.startswith("partner\twaiting 0\toldest -\tdead letters 0"), listed.stderr
    received = len(receiver.events)
    again = run_lakegate("events", "replay", "--from", "0", "--sink", "partner", environment=environment)
    assert again.returncode == 0, again.stderr
    _until(lambda: len(receiver.events) >= received + len(expected))
    unknown = run_lakegate("events", "replay", "--from", "0", "--sink", "other", environment=environment)
    assert unknown.returncode == 1 and "No sink has the name 'other'. Configured: partner." in unknown.stderr
