# SPDX-License-Identifier: Apache-2.0
"""Serialization of commits of one table, within a process and between processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest

from gateway.db.engine.advisory_locks import AdvisoryLocks
from gateway.features.tables.commit_retry import CommitConflict, CommitQueue, retry_conflicts
from gateway.iceberg.errors import CommitFailedException


async def test_commits_of_one_table_are_serialized_and_each_runs_once() -> None:
    queue, id = CommitQueue(), uuid4()
    inside = most = made = 0

    async def attempt(again: bool) -> None:
        nonlocal inside, most, made
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1
        made += 1

    await asyncio.gather(*(retry_conflicts(queue, [id], attempt) for _ in range(20)))
    assert (most, made) == (1, 20)


async def test_a_commit_that_waited_rereads_the_table_first() -> None:
    queue, id = CommitQueue(), uuid4()
    retried: list[bool] = []

    async def attempt(again: bool) -> None:
        retried.append(again)
        await asyncio.sleep(0)

    await asyncio.gather(*(retry_conflicts(queue, [id], attempt) for _ in range(3)))
    assert retried == [False, True, True]


async def test_commits_of_other_tables_do_not_wait() -> None:
    queue = CommitQueue()
    gate = asyncio.Event()

    async def held(again: bool) -> None:
        await gate.wait()

    async def free(again: bool) -> bool:
        return again

    waiting = asyncio.create_task(retry_conflicts(queue, [uuid4()], held))
    await asyncio.sleep(0)
    assert await retry_conflicts(queue, [uuid4()], free) is False
    gate.set()
    await waiting


async def test_transactions_over_the_same_tables_in_any_order_do_not_deadlock() -> None:
    queue = CommitQueue()
    one, other = UUID(int=1), UUID(int=2)
    attempts: list[bool] = []

    async def attempt(again: bool) -> None:
        await asyncio.sleep(0)
        attempts.append(again)

    both = [retry_conflicts(queue, ids, attempt) for ids in ([one, other], [other, one]) for _ in range(5)]
    await asyncio.wait_for(asyncio.gather(*both), 60)
    assert len(attempts) == 10


class Recorded(AdvisoryLocks):
    """Advisory locks of other processes that are free or not; records each request for one."""

    def __init__(self, had: bool) -> None:
        self.had = had
        self.taken_by: list[list[UUID]] = []

    @asynccontextmanager
    async def taken(self, ids: Iterable[UUID]) -> AsyncIterator[bool]:
        self.taken_by.append(list(ids))
        yield self.had


async def test_a_table_with_one_writer_takes_no_advisory_lock() -> None:
    shared = Recorded(True)
    queue, id = CommitQueue(shared), uuid4()

    async def attempt(again: bool) -> bool:
        return again

    assert [await retry_conflicts(queue, [id], attempt) for _ in range(3)] == [False, False, False]
    assert shared.taken_by == []


async def test_after_a_lost_race_commits_of_the_table_take_the_advisory_lock() -> None:
    shared = Recorded(True)
    queue, id = CommitQueue(shared), uuid4()
    retried: list[bool] = []

    async def attempt(again: bool) -> None:
        retried.append(again)
        if len(retried) == 1:
            raise CommitConflict

    await retry_conflicts(queue, [id], attempt)
    await retry_conflicts(queue, [id], attempt)
    assert retried == [False, True, True], "each commit that waited must read the table again"
    assert shared.taken_by == [[id], [id]]


async def test_a_commit_continues_without_an_unavailable_advisory_lock() -> None:
    queue, id = CommitQueue(Recorded(False)), uuid4()
    tries = 0

    async def attempt(again: bool) -> str:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise CommitConflict
        return "won"

    assert await retry_conflicts(queue, [id], attempt) == "won"


async def test_waiting_in_the_queue_of_one_table_has_a_time_limit() -> None:
    queue, id = CommitQueue(timeout_seconds=0.05), uuid4()
    gate = asyncio.Event()

    async def stuck(again: bool) -> None:
        await gate.wait()

    first = asyncio.create_task(retry_conflicts(queue, [id], stuck))
    await asyncio.sleep(0)
    with pytest.raises(CommitFailedException, match="commits to this table are waiting"):
        await retry_conflicts(queue, [id], stuck)
    gate.set()
    await first
