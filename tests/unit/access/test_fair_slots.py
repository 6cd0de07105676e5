# SPDX-License-Identifier: Apache-2.0
"""Fair slots: limits hold, no cancellation or error loses a slot, and every principal is served."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.shares.fair_slots import FairSlots, TooManyWaiting

#: (principal, steps of the work, True if it fails, step at which it is cancelled)
WORK = st.tuples(st.sampled_from("abcd"), st.integers(0, 4), st.booleans(), st.one_of(st.none(), st.integers(0, 6)))


async def _steps(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


@given(works=st.lists(WORK, max_size=30), total=st.integers(1, 4), each=st.integers(1, 3))
def test_limits_hold_and_no_slot_is_lost_after_failures_and_cancellations(
    works: list[tuple[str, int, bool, int | None]], total: int, each: int
) -> None:
    async def run() -> None:
        slots = FairSlots(total, each=each)
        held: Counter[str] = Counter()

        async def work(principal: str, steps: int, fails: bool) -> None:
            async with slots.slot(principal):
                held[principal] += 1
                try:
                    assert sum(held.values()) <= total
                    assert held[principal] <= each
                    assert slots.in_use <= total
                    await _steps(steps)
                    if fails:
                        raise OSError
                finally:
                    held[principal] -= 1

        async def cancel_at(task: asyncio.Task[None], step: int) -> None:
            await _steps(step)
            task.cancel()

        tasks, cancellers = [], []
        for principal, steps, fails, cancelled_at in works:
            task = asyncio.create_task(work(principal, steps, fails))
            tasks.append(task)
            if cancelled_at is not None:
                cancellers.append(asyncio.create_task(cancel_at(task, cancelled_at)))
        results = await asyncio.gather(*tasks, *cancellers, return_exceptions=True)
        unexpected = [each for each in results if isinstance(each, AssertionError)]
        assert unexpected == []
        assert slots.in_use == 0
        for principal in "abcd":
            taken = [slots.try_acquire(principal) for _ in range(each + 1)]
            assert sum(taken) == min(each, total), "a principal lost a slot of its share"
            for _ in range(sum(taken)):
                slots.release(principal)
        for _ in range(total):
            assert any(slots.try_acquire(principal) for principal in "wxyz"), "a slot was lost"

    asyncio.run(run())


async def test_a_principal_with_one_request_is_served_before_the_second_of_one_with_many() -> None:
    slots, served = FairSlots(1, each=1), list[str]()

    async def work(name: str) -> None:
        async with slots.slot(name[0]):
            served.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(*(work(name) for name in ("a0", "a1", "a2", "a3", "a4", "b0", "c0")))
    assert served == ["a0", "a1", "b0", "c0", "a2", "a3", "a4"]


async def test_a_principal_at_its_own_limit_does_not_keep_a_free_slot_from_another() -> None:
    slots = FairSlots(2, each=1)
    assert slots.try_acquire("a")
    waiting = asyncio.create_task(slots.acquire("a"))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert slots.try_acquire("b")
    slots.release("b")
    assert not waiting.done(), "a principal at its limit must not get the free slot"
    slots.release("a")
    await waiting


async def test_a_full_queue_refuses_its_own_principal_only() -> None:
    slots = FairSlots(1, each=1, waiting=1)
    await slots.acquire("a")
    waiters = [asyncio.create_task(slots.acquire(name)) for name in ("a", "b")]
    await asyncio.sleep(0)
    with pytest.raises(TooManyWaiting):
        await slots.acquire("a")
    slots.release("a")
    await waiters[0]
    slots.release("a")
    await waiters[1]


async def test_a_slot_granted_to_a_waiter_that_is_cancelled_at_that_moment_goes_to_the_next() -> None:
    slots = FairSlots(1, each=1)
    await slots.acquire("a")
    first, second = (asyncio.create_task(slots.acquire(name)) for name in "bc")
    await asyncio.sleep(0)
    slots.release("a")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await asyncio.wait_for(second, 5)
    assert slots.in_use == 1


def test_limits_below_one_and_foreign_releases_are_refused() -> None:
    for total, each, waiting in ((0, 1, 1), (1, 0, 1), (1, 1, -1)):
        with pytest.raises(ValueError, match="slots"):
            FairSlots(total, each=each, waiting=waiting)
    with pytest.raises(ValueError, match="no slot"):
        FairSlots(1, each=1).release("a")
