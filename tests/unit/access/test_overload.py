# SPDX-License-Identifier: Apache-2.0
"""Overload control: an overloaded process admits what it can answer in time and refuses the rest at once."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from itertools import chain

import pytest

from gateway.access.actor import Actor
from gateway.access.nouns.authz_errors import Overloaded, ShareExceeded
from gateway.access.shares.fair_slots import FairSlots
from gateway.access.shares.overload import Overload
from gateway.access.shares.shares import Lease, ShareLimits, Shares
from tests.support.door.shares import BUSY, LEAST, MOST, TARGET, WAIT, Clock, Observer


def window(overload: Overload, clock: Clock, *, decisions: int, slow: int, seconds: float = 0.25) -> None:
    """Record one window of decisions, the last of which ends it."""
    for number in range(decisions):
        if number == decisions - 1:
            clock.now += seconds
        overload.decided(1.0 if number < slow else 0.01)


def test_limit_falls_while_a_quarter_of_decisions_is_slow_and_not_below_the_least() -> None:
    clock = Clock()
    overload = Overload(least=LEAST, most=MOST, target=TARGET, clock=clock)
    limits = []
    for _ in range(10):
        window(overload, clock, decisions=8, slow=2)
        limits.append(overload.limit)
    assert limits == [42, 28, 18, 12, 8, 5, 4, 4, 4, 4]


def test_limit_grows_back_while_decisions_are_fast_and_not_above_the_most() -> None:
    clock = Clock()
    overload = Overload(least=LEAST, most=MOST, target=TARGET, clock=clock)
    for _ in range(10):
        window(overload, clock, decisions=8, slow=8)
    for _ in range(40):
        window(overload, clock, decisions=8, slow=1)
    assert overload.limit == MOST


@pytest.mark.parametrize(("decisions", "target"), [(7, TARGET), (100, 0.0)])
def test_few_decisions_or_no_target_leave_the_limit(decisions: int, target: float) -> None:
    clock = Clock()
    overload = Overload(least=LEAST, most=MOST, target=target, clock=clock)
    window(overload, clock, decisions=decisions, slow=decisions)
    assert overload.limit == MOST


def test_wait_is_predicted_by_the_latest_rate_and_unknown_after_a_pause() -> None:
    clock = Clock()
    overload = Overload(least=LEAST, most=MOST, target=TARGET, clock=clock)
    assert overload.predicted_wait(1_000) == 0
    for number in range(50):
        clock.now += 0.25 if number == 49 else 0
        overload.completed()
    assert overload.predicted_wait(100) == pytest.approx(0.5)
    clock.now += 30
    overload.completed()
    assert overload.predicted_wait(1_000) == 0, "a rate over an idle time would predict waits that nobody has"


async def test_position_counts_turns_and_is_zero_without_a_wait_for_others() -> None:
    slots = FairSlots(2, each=2)
    assert slots.position_of("alice") == 0, "a slot is free"
    for _ in range(2):
        await slots.acquire("alice")
    waiting = [asyncio.create_task(slots.acquire("alice")) for _ in range(5)]
    await asyncio.sleep(0)
    assert slots.position_of("alice") == 0, "the principal waits for its own requests only"
    assert slots.position_of("bob") == 2, "one turn of alice, then bob"
    waiting.append(asyncio.create_task(slots.acquire("bob")))
    await asyncio.sleep(0)
    assert slots.position_of("alice") == 12, "six turns of alice and bob"
    assert slots.position_of("carol") == 3
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_shrunk_slots_are_not_given_again_and_grown_ones_at_once() -> None:
    slots = FairSlots(3, each=3)
    for _ in range(3):
        await slots.acquire("alice")
    waiting = asyncio.create_task(slots.acquire("bob"))
    await asyncio.sleep(0)
    slots.resize(1, each=3)
    slots.release("alice")
    slots.release("alice")
    await asyncio.sleep(0)
    assert not waiting.done()
    assert slots.in_use == 1
    slots.resize(2, each=3)
    await waiting
    assert slots.in_use == 2


async def test_a_waiter_of_a_principal_gets_a_slot_when_its_own_limit_grows() -> None:
    slots = FairSlots(3, each=1)
    await slots.acquire("alice")
    waiting = asyncio.create_task(slots.acquire("alice"))
    await asyncio.sleep(0)
    assert not waiting.done()
    slots.resize(3, each=2)
    await waiting


async def test_no_principal_holds_all_slots_of_an_overloaded_process() -> None:
    clock = Clock()
    shares = Shares(replace(BUSY, total_requests=8, requests=8, least_requests=4), Observer(), clock=clock)
    for _ in range(5):
        clock.now += 0.25
        for _ in range(8):
            shares.decided(9.0, 1)
    held = [asyncio.create_task(shares.enter(Actor.user("oidc~slow"))) for _ in range(8)]
    await asyncio.sleep(0)
    assert sum(task.done() for task in held) == 2
    (await shares.enter(Actor.user("oidc~other"))).release()
    for _ in range(9):
        clock.now += 0.25
        for _ in range(8):
            shares.decided(0.0, 1)
    await asyncio.sleep(0)
    assert all(task.done() for task in held), "the whole share is free again"


@dataclass
class Outcome:
    """The result of a simulation. Seconds from arrival to the answer, by user, and the number of refusals by user."""

    answered: dict[str, list[float]] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)

    def all_seconds(self) -> list[float]:
        """Return the durations of all answered requests in order."""
        return sorted(chain.from_iterable(self.answered.values()))


async def simulate(arrivals: dict[str, int], *, limits: ShareLimits = BUSY, seconds: float = 10.0) -> Outcome:
    """Simulate a process that completes 200 requests per second; `arrivals` are requests per second by user.

    The process serves the requests that hold a slot in the order of their arrival, on a virtual clock.
    """
    tick, rate = 0.01, 200
    clock, outcome = Clock(), Outcome()
    shares = Shares(limits, Observer(), clock=clock, sleep=clock.sleep)
    running: deque[tuple[str, Lease, float, float]] = deque()

    async def arrive(name: str) -> None:
        arrived = clock.now
        try:
            lease = await shares.enter(Actor.user(f"oidc~{name}"))
        except (Overloaded, ShareExceeded) as refused:
            assert (refused.code, refused.retry_after_s) == (429, 1)
            outcome.refused[name] += 1
            return
        running.append((name, lease, arrived, clock.now))

    tasks = set()
    due = dict.fromkeys(arrivals, 0.0)
    for _ in range(round(seconds / tick)):
        clock.now += tick
        for name, per_second in arrivals.items():
            due[name] += per_second * tick
            while due[name] >= 1:
                due[name] -= 1
                tasks.add(asyncio.create_task(arrive(name)))
        await asyncio.sleep(0)
        for _ in range(min(round(rate * tick), len(running))):
            name, lease, arrived, began = running.popleft()
            shares.decided(clock.now - began, 1)
            lease.release()
            outcome.answered.setdefault(name, []).append(clock.now - arrived)
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return outcome


@pytest.mark.threat("LG-DIS-19")
async def test_twice_the_capacity_keeps_goodput_and_bounds_the_time_of_admitted_requests() -> None:
    outcome = await simulate({f"user{number}": 8 for number in range(50)})
    times = outcome.all_seconds()
    assert len(times) >= 0.9 * 2_000
    assert times[int(len(times) * 0.99)] <= WAIT + 2 * TARGET
    assert max(outcome.refused.values()) <= 3 * min(outcome.refused.values()), "refusals must be shared evenly"


async def test_without_overload_control_times_of_admitted_requests_grow_without_bound() -> None:
    outcome = await simulate(
        {f"user{number}": 8 for number in range(50)}, limits=replace(BUSY, decision_target=0.0, total_requests=128)
    )
    assert outcome.all_seconds()[-1] > 4
    assert not outcome.refused


async def test_small_users_are_not_refused_beside_one_that_floods() -> None:
    small = {f"user{number}": 2 for number in range(10)}
    outcome = await simulate({**small, "flood": 400})
    assert set(outcome.refused) == {"flood"}
    assert max(second for name in small for second in outcome.answered[name]) <= WAIT + 2 * TARGET


async def test_one_user_alone_waits_for_its_own_requests_and_is_not_refused() -> None:
    outcome = await simulate({"job": 260}, seconds=3.0)
    assert not outcome.refused


async def test_capacity_is_not_lost_below_it() -> None:
    outcome = await simulate({f"user{number}": 3 for number in range(50)})
    assert not outcome.refused
    assert len(outcome.all_seconds()) >= 1_450
