# SPDX-License-Identifier: Apache-2.0
"""Delivery from the outbox on a real PostgreSQL: nothing is lost, and the events of a key stay in order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta

import httpx2
import pytest
from sqlalchemy import text

from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.db.engine.database import Database
from gateway.db.warehouses import event_deliveries
from gateway.events.port import Event, EventRefused, SinkUnavailable
from gateway.events.webhook import WebhookSink
from gateway.features.events.event_delivery import EventDelivery, EventKeeping, Pace
from tests.support.rows.event_outbox import Counts, count_waiting, put, put_committed
from tests.support.rows.parts import Parts

pytestmark = pytest.mark.servers


class Sink:
    """Sink in memory. It fails after `dies_after` events of a batch, and refuses events of the key `refused`."""

    def __init__(self, name: str = "sink", *, dies_after: int | None = None, refused: str | None = None) -> None:
        self.name = name
        self.received: list[tuple[str, str]] = []
        self.dies_after = dies_after
        self._refused = refused

    async def send(self, events: Sequence[Event]) -> None:
        """Store the events one by one, and let other tasks run between them."""
        for number, event in enumerate(events):
            await asyncio.sleep(0)
            if number == self.dies_after:
                self.dies_after = None
                raise SinkUnavailable("the sink died")
            if event.key == self._refused:
                raise EventRefused(event.id, "too large\0")
            self.received.append((event.key, str(event.id)))

    async def check(self) -> None:
        """Return at once."""

    async def close(self) -> None:
        """Return at once."""

    def firsts(self) -> list[str]:
        """Return the ids in the order in which each arrived first."""
        return list(dict.fromkeys(id for _, id in self.received))


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    database = Database(parts.database_url, pool_size=5, acquire_timeout=10)
    async with database.transaction() as connection:
        await connection.execute(text("truncate events, event_deliveries, event_dead_letters"))
    yield database
    await database.close()


def _delivery(
    database: Database, sink: Sink, batch: int = 10, clock: Callable[[], float] = time.monotonic
) -> EventDelivery:
    pace = Pace(batch=batch, every=0.01, min_backoff=0.01, max_backoff=0.05)
    return EventDelivery(database, sink, observer=Counts(), pace=pace, clock=clock)


class BusySink(Sink):
    """A sink during whose calls another event is written, as under load."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    async def send(self, events: Sequence[Event]) -> None:
        """Store the events, and write another one."""
        await super().send(events)
        if len(self.received) < 50:
            await put_committed(self._database, ["later"], "sink")


@pytest.mark.parametrize(("batch", "delivered"), [(10, 3), (3, 4), (1, 52)])
async def test_events_that_are_written_while_others_are_sent_wait_for_the_next_poll(
    database: Database, batch: int, delivered: int
) -> None:
    """Under load, each would otherwise be a batch of its own. A full batch shows that more wait."""
    await put_committed(database, ["a", "b", "c"], "sink")
    assert await _delivery(database, BusySink(database), batch).deliver_waiting() == delivered


async def test_concurrent_deliverers_lose_nothing_and_keep_the_order_of_each_key(
    database: Database, parts: Parts
) -> None:
    """A missing lock would let a deliverer send a later event of a key before an earlier one."""
    other = Database(parts.database_url, pool_size=5, acquire_timeout=10)
    ids = await put_committed(database, [f"k{number % 3}" for number in range(300)], "sink")
    sink = Sink()
    running = [asyncio.create_task(_delivery(each, sink, 7).run()) for each in (database, other)]
    async with asyncio.timeout(60):
        while await count_waiting(database, "sink"):
            await asyncio.sleep(0.05)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    await other.close()
    assert sink.firsts() == ids


async def test_lock_of_a_machine_that_has_gone_is_released_soon(database: Database) -> None:
    """Its connection is never closed. The system's default would keep the lock, and all events, for two hours."""
    async with event_deliveries.locked_sink(database, "sink") as connection:
        assert connection is not None
        shown = [
            int((await connection.execute(text(f"show tcp_keepalives_{name}"))).scalar_one())
            for name in ("idle", "interval", "count")
        ]
    assert 0 < shown[0] + shown[1] * shown[2] <= 30


async def test_second_deliverer_sends_nothing_while_the_first_holds_the_sink(database: Database) -> None:
    await put_committed(database, ["a"], "sink")
    sink = Sink()
    async with event_deliveries.locked_sink(database, "sink") as connection:
        assert connection is not None
        assert await _delivery(database, sink).deliver_waiting() == 0
    assert sink.received == []
    assert await _delivery(database, sink).deliver_waiting() == 1


async def test_event_of_a_transaction_that_commits_late_is_delivered(database: Database) -> None:
    """A stored position would skip the event with the lower sequence."""
    sink = Sink()
    async with database.transaction() as late:
        (first,) = await put(late, ["a"], "sink")
        (second,) = await put_committed(database, ["b"], "sink")
        await _delivery(database, sink).deliver_waiting()
        assert sink.firsts() == [second]
    await _delivery(database, sink).deliver_waiting()
    assert sink.firsts() == [second, first]


async def test_webhook_that_accepts_few_requests_at_a_time_gets_all_events_once(database: Database) -> None:
    """It never accepts a whole batch, so a batch that is sent again from its beginning would never end."""
    ids = await put_committed(database, ["a"] * 10, "sink")
    received: list[str] = []

    statuses = iter([204] * 4 + [429] + [204] * 4 + [429] + [204] * 2)

    def answer(request: httpx2.Request) -> httpx2.Response:
        status = next(statuses)
        if status == 204:
            received.append(request.headers["webhook-id"])
        return httpx2.Response(status)

    sink = WebhookSink("sink", "http://h/", secret=b"key", timeout=5, transport=httpx2.MockTransport(answer))
    delivery = EventDelivery(database, sink, observer=Counts(), pace=Pace(batch=10, min_backoff=0.01))
    assert [await delivery.deliver_waiting() for _ in range(3)] == [0, 0, 2]
    assert received == ids
    await sink.close()


async def test_sink_that_dies_in_a_batch_gets_all_events_again_in_order(database: Database) -> None:
    ids = await put_committed(database, ["a"] * 10, "sink")
    sink = Sink(dies_after=4)
    # The clock stands still, so the backoff of the failure does not end.
    delivery = _delivery(database, sink, clock=lambda: 0.0)
    assert await delivery.deliver_waiting() == 0
    assert await count_waiting(database, "sink") == 10
    with pytest.raises(SinkUnavailable, match="died"):
        await delivery.check()
    await delivery.deliver_waiting()
    assert sink.firsts() == ids
    assert len(sink.received) == 14


async def test_refused_event_is_a_dead_letter_and_later_events_are_delivered(database: Database) -> None:
    ids = await put_committed(database, ["a", "large", "b", "large", "c"], "sink")
    sink = Sink(refused="large")
    await _delivery(database, sink).deliver_waiting()
    assert sink.firsts() == [ids[0], ids[2], ids[4]]
    found = await event_deliveries.dead_letters(database, sink="sink", after=0, limit=10)
    assert [(str(each.id), each.reason) for each in found] == [(ids[1], "too large�"), (ids[3], "too large�")]
    async with database.transaction() as connection:
        assert await event_deliveries.retry_dead_letters(connection, "sink") == 2
    healthy = Sink()
    await _delivery(database, healthy).deliver_waiting()
    assert healthy.firsts() == [ids[1], ids[3]]
    assert await event_deliveries.dead_letters(database, sink=None, after=0, limit=10) == []


async def test_dead_sink_does_not_delay_another_one(database: Database) -> None:
    ids = await put_committed(database, ["a", "b"], "sink", "dead")
    dead = Sink("dead", dies_after=0)
    await _delivery(database, dead).deliver_waiting()
    sink = Sink()
    await _delivery(database, sink).deliver_waiting()
    assert sink.firsts() == ids
    assert await count_waiting(database, "dead") == 2


async def test_replay_sends_the_events_from_a_sequence_or_a_time(database: Database) -> None:
    ids = await put_committed(database, ["a", "b", "c"], "sink")
    sink = Sink()
    await _delivery(database, sink).deliver_waiting()
    kept = await event_deliveries.kept(database, after=0, limit=10)
    async with database.transaction() as connection:
        assert await event_deliveries.replay(connection, ["sink"], sequence=kept[1].sequence) == 2
        assert await event_deliveries.replay(connection, ["sink", "new"], time=kept[0].at) == 4
    await _delivery(database, sink).deliver_waiting()
    assert [id for _, id in sink.received] == [*ids, *ids]


class ReplayedSink(Sink):
    """A sink during whose second call an operator replays all events."""

    def __init__(self, database: Database, refused: str | None) -> None:
        super().__init__(refused=refused)
        self._database = database
        self._calls = 0

    async def send(self, events: Sequence[Event]) -> None:
        """Replay, and store the events."""
        self._calls += 1
        if self._calls == 2:
            async with self._database.transaction() as connection:
                assert await event_deliveries.replay(connection, ["sink"], sequence=0) == 1
        await super().send(events)


@pytest.mark.parametrize("refused", [None, "other"])
async def test_replay_during_a_call_leaves_the_last_event_of_a_key_last(
    database: Database, refused: str | None
) -> None:
    """Otherwise the sink would end with the state of an earlier event."""
    sink = ReplayedSink(database, refused)
    delivery = _delivery(database, sink)
    first = await put_committed(database, ["key"], "sink")
    await delivery.deliver_waiting()
    later = await put_committed(database, ["other", "key"] if refused else ["key"], "sink")
    while await count_waiting(database, "sink"):
        await delivery.deliver_waiting()
    assert [id for key, id in sink.received if key == "key"][-2:] == [first[0], later[-1]]


async def test_retention_deletes_old_events_that_wait_for_no_sink(database: Database) -> None:
    await put_committed(database, ["delivered", "refused"], "sink")
    await _delivery(database, Sink(refused="refused")).deliver_waiting()
    await put_committed(database, ["waiting"], "sink")
    keeping = EventKeeping(database, ["sink"], observer=Counts(), retention=timedelta(days=1), gateway="g")
    assert not await keeping.delete_old()
    async with database.transaction() as connection:
        await connection.execute(text("update events set at = at - interval '2 days'"))
    assert await keeping.delete_old()
    assert [each.key for each in await event_deliveries.kept(database, after=0, limit=9)] == ["refused", "waiting"]
    async with database.transaction() as connection:
        await connection.execute(text("update event_dead_letters set at = at - interval '2 days'"))
    while await keeping.delete_old():
        pass
    assert [each.key for each in await event_deliveries.kept(database, after=0, limit=9)] == ["waiting"]


async def test_sink_that_is_no_longer_configured_is_counted_until_it_is_forgotten(database: Database) -> None:
    await put_committed(database, ["a", "b"], "former")
    counts = Counts()
    keeping = EventKeeping(database, ["sink"], observer=counts, retention=timedelta(days=1), gateway="g")
    await keeping.count()
    assert counts.counted == {"sink": (0, 0), "former": (2, 0)}
    async with database.transaction() as connection:
        assert await event_deliveries.forget(connection, "former") == 2
    await keeping.count()
    assert counts.counted["former"] == (0, 0)


class Rounds(Counts):
    """Observer that counts the rounds of one worker."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds = 0

    def events_counted(self, sink: str, waiting: int, dead_letters: int, oldest_seconds: float) -> None:
        """Count the round."""
        self.rounds += 1


async def test_one_worker_of_a_gateway_counts_until_it_ends(database: Database) -> None:
    """Without the lock, each worker process counts all waiting events every ten seconds."""
    observers = [Rounds(), Rounds()]
    running: list[asyncio.Task[None]] = []
    for observer in observers:
        keeping = EventKeeping(
            database, ["sink"], observer=observer, retention=timedelta(days=1), gateway="g", every=0.01
        )
        running.append(asyncio.create_task(keeping.run()))
        await _until(lambda: any(each.rounds for each in observers))
    await _until(lambda: observers[0].rounds > 10)
    assert observers[1].rounds == 0
    running[0].cancel()
    await _until(lambda: observers[1].rounds > 0)
    running[1].cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def test_old_events_are_deleted_although_every_count_fails(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A count of many waiting events may always exceed its time. Then the outbox must not grow without end."""

    async def too_slow(_: object) -> list[event_deliveries.SinkState]:
        raise DatabaseUnavailable("the statement took too long")

    monkeypatch.setattr(event_deliveries, "states_on", too_slow)
    await put_committed(database, ["old"])
    async with database.transaction() as connection:
        await connection.execute(text("update events set at = at - interval '2 days'"))
    keeping = EventKeeping(database, ["sink"], observer=Counts(), retention=timedelta(days=1), gateway="g", every=0.01)
    running = asyncio.create_task(keeping.run())
    async with asyncio.timeout(60):
        while await event_deliveries.kept(database, after=0, limit=9):
            await asyncio.sleep(0.05)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_deletion_does_not_wait_for_a_replay(database: Database) -> None:
    """All workers would wait for a long replay, each with a connection."""
    async with database.transaction() as connection:
        await event_deliveries.replay(connection, ["sink"], sequence=0)
        assert await event_deliveries.delete_old(database, age=timedelta(days=1), limit=9) == 0


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)
