# SPDX-License-Identifier: Apache-2.0
"""Commits of one table take turns within a process."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

from gateway.catalog.races import Turns, until_won


async def test_commits_of_one_table_never_overlap_and_each_is_made_once() -> None:
    turns, id = Turns(), uuid4()
    inside = most = made = 0

    async def attempt(again: bool) -> None:
        nonlocal inside, most, made
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1
        made += 1

    await asyncio.gather(*(until_won(turns, [id], attempt) for _ in range(20)))
    assert (most, made) == (1, 20)


async def test_who_had_to_wait_reads_again_first() -> None:
    turns, id = Turns(), uuid4()
    told: list[bool] = []

    async def attempt(again: bool) -> None:
        told.append(again)
        await asyncio.sleep(0)

    await asyncio.gather(*(until_won(turns, [id], attempt) for _ in range(3)))
    assert told == [False, True, True]


async def test_other_tables_do_not_wait() -> None:
    turns = Turns()
    gate = asyncio.Event()

    async def held(again: bool) -> None:
        await gate.wait()

    async def free(again: bool) -> bool:
        return again

    waiting = asyncio.create_task(until_won(turns, [uuid4()], held))
    await asyncio.sleep(0)
    assert await until_won(turns, [uuid4()], free) is False
    gate.set()
    await waiting


async def test_transactions_that_name_the_same_tables_in_another_order_do_not_wait_for_each_other_for_ever() -> None:
    turns = Turns()
    one, other = UUID(int=1), UUID(int=2)

    async def attempt(again: bool) -> None:
        await asyncio.sleep(0)

    both = [until_won(turns, ids, attempt) for ids in ([one, other], [other, one]) for _ in range(5)]
    await asyncio.wait_for(asyncio.gather(*both), 5)
