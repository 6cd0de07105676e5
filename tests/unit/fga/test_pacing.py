# SPDX-License-Identifier: Apache-2.0
"""Pacing of large checks: other users are served, and each delay is bounded."""

from __future__ import annotations

import asyncio

import pytest

from gateway.fga.pacing import BURST_SECONDS, LONGEST_DELAY_SECONDS, RATE, Pacing


class Clock:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.at = 1000.0
        self.slept = 0.0

    def __call__(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds
        self.slept += seconds


async def send(
    pacing: Pacing,
    clock: Clock,
    user: str,
    seconds: float,
    *,
    batches: int,
    others: str | None,
    longest: float = LONGEST_DELAY_SECONDS,
) -> None:
    """Run a large check with batches of `seconds` in total, while `others` send small checks."""
    pace = pacing.of(user, longest=longest)
    for _ in range(batches):
        if others is not None:
            pacing.count_small_check(others)
        async with pace.batch():
            clock.at += seconds / batches


def paced() -> tuple[Pacing, Clock]:
    clock = Clock()
    return Pacing(clock=clock, sleep=clock.sleep), clock


@pytest.mark.threat("LG-DIS-19")
async def test_constant_large_checks_get_a_share_of_time_beside_other_users() -> None:
    pacing, clock = paced()
    began, busy = clock.at, 0.0
    while clock.at - began < 500:
        await send(pacing, clock, "user:a", 1.0, batches=100, others="user:b")
        busy += 1.0
    assert busy <= BURST_SECONDS + (clock.at - began) * RATE * 1.1
    assert busy >= (clock.at - began) * RATE * 0.9, "the user must get at least 90% of its rate"


async def test_an_occasional_large_check_is_not_delayed() -> None:
    pacing, clock = paced()
    for _ in range(20):
        await send(pacing, clock, "user:a", 1.0, batches=100, others="user:b")
        clock.at += 10
    assert clock.slept == 0


@pytest.mark.parametrize("others", [None, "user:a"])
async def test_a_single_active_user_is_not_delayed_and_accumulates_no_debt(others: str | None) -> None:
    pacing, clock = paced()
    await send(pacing, clock, "user:a", 500.0, batches=1000, others=others)
    assert clock.slept == 0
    await send(pacing, clock, "user:a", BURST_SECONDS * 0.9, batches=10, others="user:b")
    assert clock.slept == 0


async def test_small_checks_of_another_user_count_for_one_second() -> None:
    pacing, clock = paced()
    await send(pacing, clock, "user:a", 4.0, batches=400, others="user:b")
    before = clock.slept
    pacing.count_small_check("user:b")
    pacing.count_small_check("user:a")
    pacing.count_small_check("user:a")
    await send(pacing, clock, "user:a", 0.5, batches=1, others=None)
    assert clock.slept > before
    before = clock.slept
    clock.at += 1.5
    await send(pacing, clock, "user:a", 0.5, batches=1, others="user:a")
    assert clock.slept == before


async def test_the_delay_of_one_check_is_bounded() -> None:
    pacing, clock = paced()
    await send(pacing, clock, "user:a", 60.0, batches=100, others="user:b")
    assert clock.slept == pytest.approx(LONGEST_DELAY_SECONDS)
    await send(pacing, clock, "user:a", 60.0, batches=100, others="user:b")
    clock.at += BURST_SECONDS / RATE
    before = clock.slept
    await send(pacing, clock, "user:a", 1.0, batches=10, others="user:b")
    assert clock.slept == before, "an undelayed check must cause no later delay"


async def test_a_check_about_an_engine_is_not_delayed_or_charged_to_the_user() -> None:
    pacing, clock = paced()
    await send(pacing, clock, "user:a", 60.0, batches=100, others="user:b", longest=0.0)
    await send(pacing, clock, "user:a", BURST_SECONDS * 0.9, batches=10, others="user:b")
    assert clock.slept == 0


async def test_large_checks_are_charged_to_each_user_separately() -> None:
    pacing, clock = paced()
    await send(pacing, clock, "user:a", 60.0, batches=100, others="user:b")
    before = clock.slept
    await send(pacing, clock, "user:c", 1.0, batches=10, others="user:b")
    assert clock.slept == before


async def test_batches_of_several_users_alternate() -> None:
    pacing, order = Pacing(), list[str]()

    async def question(user: str) -> None:
        pace = pacing.of(user)
        for _ in range(3):
            async with pace.batch():
                order.append(user)
                await asyncio.sleep(0)

    await asyncio.gather(*(question(user) for user in ("user:a", "user:a", "user:b")))
    assert order.index("user:b") <= 2
    assert [order.count(user) for user in ("user:a", "user:b")] == [6, 3]
