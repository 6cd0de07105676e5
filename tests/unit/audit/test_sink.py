# SPDX-License-Identifier: Apache-2.0
"""The audit sink: records are reported as durable only after the write, none are lost, and the buffer is bounded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

import msgspec
import pytest

from gateway.access.audit.audit_record import AuditedActor, AuditRecord, IssuedCredential
from gateway.access.dependency_errors import AuditShareFull, AuditUnavailable
from gateway.audit.sink import BufferedAudit
from tests.support.door.world import NOW
from tests.support.rows.audit_records import allowed_record


def record(number: int) -> AuditRecord:
    """Return a record that is identified by its number."""
    return allowed_record(UUID(int=number), NOW, request_id=str(number))


@dataclass
class Store:
    """A store that keeps the written batches; fails or blocks on demand."""

    batches: list[list[int]] = field(default_factory=list)
    failing: Exception | None = None
    fails_once: bool = False
    refuses: Callable[[int], bool] = lambda _: False
    gate: asyncio.Event | None = None
    calls: int = 0
    entries: list[str] = field(default_factory=list)

    async def write(self, records: Sequence[AuditRecord], issued: Sequence[IssuedCredential]) -> None:
        self.calls += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.fails_once:
            self.fails_once = False
            raise OSError("away for a moment")
        numbers = [each.id.int for each in records]
        if self.failing is not None or any(self.refuses(number) for number in numbers):
            raise self.failing or ValueError("the database refuses this record")
        self.batches.append(numbers)
        self.entries += [each.principal for each in issued]

    @property
    def written(self) -> list[int]:
        return [number for batch in self.batches for number in batch]


@asynccontextmanager
async def sink(store: Store, **options: float | int) -> AsyncIterator[BufferedAudit]:
    """Context manager. Run a sink; at the end it stops and all records are written."""
    made = BufferedAudit(store.write, counted=lambda durability, number: None, **options)  # type: ignore[arg-type]  # numbers of both kinds
    made.start()
    try:
        yield made
    finally:
        store.failing = None
        store.refuses = lambda _: False
        if store.gate is not None:
            store.gate.set()
        await made.stop()


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> float:
    """Return the seconds until `condition` holds. Raise TimeoutError."""
    started = time.perf_counter()
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)
    return time.perf_counter() - started


async def test_a_buffered_record_is_written_within_200_ms() -> None:
    store = Store()
    took = []
    async with sink(store) as audit:
        for number in range(5):
            audit.buffer(record(number))
            took.append(await until(lambda: len(store.written) > number))  # noqa: B023 - awaited at once
    assert store.written == list(range(5))
    # Several runs, because the machine may pause during any one of them.
    assert sorted(took)[1] < 0.2


async def test_a_committed_record_does_not_wait_for_the_interval() -> None:
    store = Store()
    async with sink(store, flush_seconds=30) as audit:
        started = time.perf_counter()
        await audit.commit(record(1))
        assert time.perf_counter() - started < 15
        assert store.written == [1]


async def test_commit_returns_only_after_the_write() -> None:
    store = Store(gate=asyncio.Event())
    async with sink(store) as audit:
        committing = asyncio.create_task(audit.commit(record(1)))
        await asyncio.sleep(0.05)
        assert not committing.done()
        assert store.gate is not None
        store.gate.set()
        await committing
        assert store.written == [1]


async def test_commits_that_wait_share_one_write() -> None:
    store = Store(gate=asyncio.Event())
    async with sink(store, flush_seconds=30) as audit:
        first = asyncio.create_task(audit.commit(record(0)))
        await until(lambda: store.calls == 1)
        rest = [asyncio.create_task(audit.commit(record(number))) for number in range(1, 51)]
        await asyncio.sleep(0.01)
        assert store.gate is not None
        store.gate.set()
        await asyncio.gather(first, *rest)
    assert store.batches == [[0], list(range(1, 51))]


async def test_a_failed_write_is_never_reported_as_durable() -> None:
    store = Store(failing=OSError("the disk is full"))
    async with sink(store, flush_seconds=0.01) as audit:
        for number in range(3):
            with pytest.raises(AuditUnavailable, match="not written: OSError"):
                await audit.commit(record(number))
        assert store.written == []


async def test_a_write_that_hangs_is_an_outage_in_bounded_time() -> None:
    store = Store(gate=asyncio.Event())
    async with sink(store, commit_timeout=0.05) as audit:
        started = time.perf_counter()
        with pytest.raises(AuditUnavailable, match="not stored in time"):
            await audit.commit(record(1))
        assert time.perf_counter() - started < 30


async def test_buffered_records_survive_an_outage_in_order() -> None:
    store = Store(failing=OSError("away"))
    async with sink(store, flush_seconds=0.01, batch=2) as audit:
        for number in range(7):
            audit.buffer(record(number))
        await asyncio.sleep(0.05)
        for number in range(7, 9):
            audit.buffer(record(number))
        assert store.written == []
        store.failing = None
        await until(lambda: len(store.written) == 9)
    assert store.written == list(range(9))


async def test_a_failed_write_is_retried_in_the_same_order() -> None:
    store = Store(fails_once=True)
    async with sink(store, flush_seconds=0.01, batch=3) as audit:
        for number in range(5):
            audit.buffer(record(number))
        await until(lambda: len(store.written) == 5)
    assert store.written == list(range(5))


async def test_a_full_buffer_refuses_records_until_it_has_room() -> None:
    store = Store(failing=OSError("away"))
    async with sink(store, capacity=3, flush_seconds=0.01) as audit:
        for number in range(3):
            audit.buffer(record(number))
        with pytest.raises(AuditUnavailable, match="full"):
            audit.buffer(record(3))
        store.failing = None
        await until(lambda: len(store.written) == 3)
        audit.buffer(record(4))
    assert store.written == [0, 1, 2, 4]


async def test_too_many_waiting_commits_are_refused() -> None:
    store = Store(gate=asyncio.Event())
    async with sink(store, capacity=2) as audit:
        waiting = [asyncio.create_task(audit.commit(record(0)))]
        await until(lambda: store.calls == 1)
        waiting += [asyncio.create_task(audit.commit(record(number))) for number in (1, 2)]
        await asyncio.sleep(0.01)
        with pytest.raises(AuditUnavailable, match="cannot accept more"):
            await audit.commit(record(3))
        assert store.gate is not None
        store.gate.set()
        await asyncio.gather(*waiting)


async def test_stopping_writes_all_records_and_accepts_no_more() -> None:
    store = Store()
    async with sink(store, flush_seconds=30, batch=3) as audit:
        for number in range(10):
            audit.buffer(record(number))
        await audit.stop()
        assert store.written == list(range(10))
        with pytest.raises(AuditUnavailable):
            audit.buffer(record(10))
        with pytest.raises(AuditUnavailable):
            await audit.commit(record(11))


async def test_stopping_reports_records_that_could_not_be_written() -> None:
    store = Store(failing=OSError("away"))
    audit = BufferedAudit(store.write, counted=lambda durability, number: None, flush_seconds=0.01)
    audit.start()
    audit.buffer(record(1))
    with pytest.raises(AuditUnavailable, match="1 buffered audit records"):
        await audit.stop()


async def test_a_cancelled_waiting_commit_does_not_affect_other_commits() -> None:
    store = Store(gate=asyncio.Event())
    async with sink(store) as audit:
        gone = asyncio.create_task(audit.commit(record(1)))
        kept = asyncio.create_task(audit.commit(record(2)))
        await asyncio.sleep(0.01)
        gone.cancel()
        assert store.gate is not None
        store.gate.set()
        await kept
        await audit.commit(record(3))
    assert store.written == [1, 2, 3]


async def test_one_record_that_the_database_refuses_does_not_stop_the_others() -> None:
    """Otherwise one caller with an invalid name could block every response of the gateway."""
    store = Store(refuses=lambda number: number == 13)
    async with sink(store, flush_seconds=0.01) as audit:
        audit.buffer(record(13))
        for number in (1, 2):
            audit.buffer(record(number))
        await audit.commit(record(3))
        await until(lambda: sorted(store.written) == [1, 2, 3])
        with pytest.raises(AuditUnavailable):
            await asyncio.gather(audit.commit(record(13)), audit.commit(record(4)))
        await until(lambda: 4 in store.written)
        with pytest.raises(AuditUnavailable, match="1 buffered audit records"):
            await audit.stop()
        audit._refused.clear()


async def test_records_that_the_database_refuses_stay_in_the_buffer() -> None:
    store = Store(refuses=lambda number: True)
    audit = BufferedAudit(store.write, counted=lambda durability, number: None, capacity=2, flush_seconds=0.01)
    audit.start()
    for number in range(2):
        audit.buffer(record(number))
    await asyncio.sleep(0.05)
    with pytest.raises(AuditUnavailable, match="full"):
        audit.buffer(record(2))
    with pytest.raises(AuditUnavailable, match="2 buffered audit records"):
        await audit.stop()


async def test_written_records_are_counted() -> None:
    counted: list[tuple[str, int]] = []
    store = Store()
    audit = BufferedAudit(store.write, counted=lambda durability, number: counted.append((durability, number)))
    audit.start()
    audit.buffer(record(1))
    await audit.commit(record(2))
    await audit.stop()
    totals = {kind: sum(n for each, n in counted if each == kind) for kind in ("group", "buffered")}
    assert totals == {"group": 1, "buffered": 1}


async def test_one_principal_cannot_fill_the_buffer_for_the_others() -> None:
    store = Store(gate=asyncio.Event())

    def of(user: str, number: int) -> AuditRecord:
        return msgspec.structs.replace(record(number), actor=AuditedActor(kind="user", id=user))

    async with sink(store, capacity=10, share=3, flush_seconds=0.01) as audit:
        for number in range(3):
            audit.buffer(of("oidc~mallory", number))
        with pytest.raises(AuditShareFull):
            audit.buffer(of("oidc~mallory", 3))
        audit.buffer(of("oidc~alice", 4))
        assert store.gate is not None
        store.gate.set()
        await until(lambda: sorted(store.written) == [0, 1, 2, 4])
        for number in range(5, 8):
            audit.buffer(of("oidc~mallory", number))
    assert sorted(store.written) == [0, 1, 2, 4, 5, 6, 7]


async def test_during_an_outage_a_share_frees_no_room_before_its_records_are_written() -> None:
    store = Store(failing=OSError("away"))
    async with sink(store, capacity=10, share=2, flush_seconds=0.01) as audit:
        for number in range(2):
            audit.buffer(record(number))
        await until(lambda: store.calls >= 3)
        with pytest.raises(AuditShareFull):
            audit.buffer(record(2))
        store.failing = None
        await until(lambda: store.written == [0, 1])
        audit.buffer(record(3))


def entry(number: int) -> IssuedCredential:
    return IssuedCredential(
        id=UUID(int=number),
        request_id="r",
        principal=str(number),
        assumed_role=None,
        engine=None,
        view_owner=None,
        project_id="p",
        warehouse_id=UUID(int=1),
        kind="table",
        table_id=UUID(int=2),
        prefix="s3://lake/t/",
        level="read",
        provider="s3",
        session_name="s",
        policy_digest="d",
        seconds=900,
        expires_at=datetime(2026, 3, 4, tzinfo=UTC),
    )


async def test_a_register_entry_is_written_with_its_record_and_once_a_batch() -> None:
    store = Store(gate=asyncio.Event())
    async with sink(store, flush_seconds=30) as audit:
        first = asyncio.create_task(audit.commit(record(0)))
        await until(lambda: store.calls == 1)
        rest = [asyncio.create_task(audit.commit(record(number), entry(number % 2))) for number in range(1, 5)]
        audit.buffer(record(5))
        await asyncio.sleep(0.01)
        assert store.gate is not None
        store.gate.set()
        await asyncio.gather(first, *rest)
        assert sorted(store.entries) == ["0", "1"]
        assert store.batches == [[0], [1, 2, 3, 4, 5]]


async def test_the_entry_of_a_refused_record_is_not_written_with_another_one() -> None:
    store = Store(gate=asyncio.Event(), refuses=lambda number: number == 2)
    async with sink(store, flush_seconds=30) as audit:
        first = asyncio.create_task(audit.commit(record(0)))
        await until(lambda: store.calls == 1)
        rest = [asyncio.create_task(audit.commit(record(number), entry(number))) for number in (1, 2, 3)]
        await asyncio.sleep(0.01)
        assert store.gate is not None
        store.gate.set()
        await first
        one, two, three = await asyncio.gather(*rest, return_exceptions=True)
    assert (one, three) == (None, None) and isinstance(two, AuditUnavailable)
    assert store.entries == ["1", "3"]
