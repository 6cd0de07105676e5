# SPDX-License-Identifier: Apache-2.0
"""Shares: a principal that exceeds a limit is refused with a retry time, and other principals are not."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.actor import Actor
from gateway.access.nouns.authz_errors import ShareExceeded
from gateway.access.shares.fair_slots import TokenBuckets
from gateway.access.shares.shares import Lane, ShareLimits, Shares, principal_key
from tests.support.door.shares import LIMITS, Clock, Observer

ALICE, BOB, TRINO = Actor.user("oidc~alice"), Actor.user("oidc~bob"), Actor.user("oidc~trino")
FOR_ALICE = Actor.user("oidc~alice", engine="oidc~trino")


def shares(limits: ShareLimits = LIMITS) -> tuple[Shares, Observer, Clock]:
    observer, clock = Observer(), Clock()
    return Shares(limits, observer, clock=clock, sleep=clock.sleep), observer, clock


async def test_a_principal_at_its_limit_waits_and_does_not_block_other_principals() -> None:
    made, observer, _ = shares()
    held = [await made.enter(ALICE), await made.enter(ALICE)]
    with pytest.raises(ShareExceeded, match=r"concurrent requests \(2 .*Retry after 1 s") as refused:
        await made.enter(ALICE)
    assert (refused.value.code, refused.value.retry_after_s) == (429, 1)
    assert (observer.waited, observer.refused) == (["requests"], ["requests"])
    other = await made.enter(BOB)
    assert observer.used["requests", "user"] == 3
    waiting = asyncio.create_task(made.enter(ALICE))
    await asyncio.sleep(0)
    held[0].release()
    held[0].release()
    (await waiting).release()
    for lease in (held[1], other):
        lease.release()
    assert observer.used["requests", "user"] == 0


async def test_an_engine_is_served_while_users_hold_all_user_slots() -> None:
    made, _, clock = shares()
    for actor in (ALICE, ALICE, BOB):
        await made.enter(actor)
    with pytest.raises(ShareExceeded):
        await made.enter(TRINO)
    made.recognize(TRINO.id)
    leases = [await made.enter(TRINO) for _ in range(2)] + [await made.enter(FOR_ALICE)]
    assert {lease.lane for lease in leases} == {Lane.ENGINE}
    clock.now += 301
    assert made.lane_of(TRINO) is Lane.USER, "an engine that is no longer verified must be in the lane of users"


@pytest.mark.threat("LG-DIS-19")
async def test_large_requests_of_one_principal_are_served_one_after_the_other() -> None:
    made, observer, _ = shares(
        replace(LIMITS, requests=5, total_requests=9, questions_per_second=9e5, question_burst=9e5)
    )
    first, second, third, small = [await made.enter(ALICE) for _ in range(4)]
    await first.charge_questions(51)
    await first.charge_questions(900)
    with pytest.raises(ShareExceeded, match=r"more than 50 .* one after the other .* Retry after 1 s"):
        await second.charge_questions(51)
    assert (observer.waited, observer.refused) == (["large_requests"], ["large_requests"])
    await small.charge_questions(50)
    await (await made.enter(BOB)).charge_questions(51)
    waiting = asyncio.create_task(third.charge_questions(51))
    await asyncio.sleep(0)
    first.release()
    first.release()
    await waiting
    third.release()
    await second.charge_questions(51)


async def test_a_delegated_engine_does_not_wait_for_large_requests() -> None:
    made, observer, _ = shares()
    made.recognize(TRINO.id)
    for lease in [await made.enter(TRINO) for _ in range(2)]:
        await lease.charge_questions(100)
    assert observer.waited == []


async def test_the_concurrency_of_an_engine_is_bounded() -> None:
    """Any right on one warehouse makes an identity a recognized engine, so its concurrency and memory are bounded."""
    made, observer, _ = shares(replace(LIMITS, wait=0.0))
    made.recognize(TRINO.id)
    first, second = await made.enter(TRINO), await made.enter(TRINO)
    with pytest.raises(ShareExceeded, match="concurrent requests"):
        await made.enter(TRINO)
    first.take_bytes(60)
    with pytest.raises(ShareExceeded, match="request bytes"):
        second.take_bytes(60)
    await first.charge_questions(200)
    with pytest.raises(ShareExceeded, match="authorization questions"):
        await first.charge_questions(100)
    assert observer.refused == ["requests", "bytes", "questions"]


async def test_a_paused_request_leaves_its_slot_to_another_and_keeps_its_bytes() -> None:
    made, observer, _ = shares(replace(LIMITS, requests=1))
    slow = await made.enter(ALICE, announced_bytes=60)
    slow.pause()
    slow.pause()
    assert observer.used["requests", "user"] == 0
    other = await made.enter(ALICE)
    with pytest.raises(ShareExceeded, match="request bytes"):
        other.take_bytes(60)
    with pytest.raises(ShareExceeded, match="concurrent requests"):
        await slow.resume()
    other.release()
    await slow.resume()
    await slow.resume()
    assert observer.used["requests", "user"] == 1
    slow.release()
    slow.release()
    await slow.resume()
    assert observer.used["requests", "user"] == 0, "a request that ended while paused must not take a slot"


async def test_a_request_that_ends_while_paused_releases_its_slot_once() -> None:
    made, observer, _ = shares()
    ended, stays = await made.enter(ALICE, announced_bytes=50), await made.enter(ALICE)
    ended.pause()
    ended.release()
    assert observer.used["requests", "user"] == 1
    stays.take_bytes(100)


async def test_each_user_behind_an_engine_has_a_separate_share() -> None:
    made, _, _ = shares(replace(LIMITS, wait=0.0))
    made.recognize(TRINO.id)
    assert len({principal_key(each) for each in (ALICE, TRINO, FOR_ALICE)}) == 3
    delegated, itself = await made.enter(FOR_ALICE), await made.enter(TRINO)
    await delegated.charge_questions(20)
    with pytest.raises(ShareExceeded, match=r"authorization questions \(10 a second"):
        await delegated.charge_questions(1)
    await itself.charge_questions(200)


async def test_checks_beyond_the_rate_wait_and_are_then_served() -> None:
    made, observer, clock = shares(replace(LIMITS, wait=2.0))
    lease = await made.enter(ALICE)
    await lease.charge_questions(20)
    assert clock.now == 1000.0
    await lease.charge_questions(20)
    assert clock.now == 1002.0, "the request must wait for the time of twenty checks"
    await lease.charge_questions(1_000_000)
    assert clock.now == 1004.0, "a request above the burst must wait for a full bucket"


async def test_an_ordinary_request_is_charged_one_check() -> None:
    made, observer, _ = shares(replace(LIMITS, wait=0.0))
    lease = await made.enter(ALICE)
    for _ in range(20):
        await lease.charge_questions(10)
    with pytest.raises(ShareExceeded):
        await lease.charge_questions(10)
    assert observer.refused == ["questions"]


async def test_checks_beyond_the_longest_wait_are_refused_and_not_charged() -> None:
    made, observer, clock = shares(replace(LIMITS, wait=0.5))
    lease = await made.enter(ALICE)
    await lease.charge_questions(20)
    with pytest.raises(ShareExceeded) as refused:
        await lease.charge_questions(20)
    assert (refused.value.retry_after_s, observer.refused) == (2, ["questions"])
    clock.now += 2
    await lease.charge_questions(20)


async def test_body_bytes_of_a_principal_are_bounded_and_one_large_request_is_served() -> None:
    made, _, _ = shares()
    with_all = await made.enter(ALICE, announced_bytes=5_000)
    with pytest.raises(ShareExceeded, match="request bytes"):
        await made.enter(ALICE, announced_bytes=1)
    second = await made.enter(ALICE)
    with pytest.raises(ShareExceeded, match="request bytes"):
        second.take_bytes(1)
    (await made.enter(BOB, announced_bytes=100)).release()
    with_all.release()
    second.take_bytes(100)
    second.release()
    assert (await made.enter(ALICE, announced_bytes=100)).bytes == 100


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.floats(0.1, 50), st.floats(0, 3), st.floats(0, 2)), min_size=1, max_size=60
    )
)
def test_a_bucket_never_gives_more_than_its_rate_and_burst(steps: list[tuple[str, float, float, float]]) -> None:
    rate, burst = 10.0, 20.0
    buckets, now, given = TokenBuckets(rate, burst), 0.0, {"a": 0.0, "b": 0.0}
    latest = 0.0
    for principal, tokens, passes, longest in steps:
        now += passes
        taken, wait = buckets.reserve(principal, tokens, now, longest=longest)
        assert wait >= 0
        if taken:
            assert wait <= longest
            given[principal] += min(tokens, burst)
            latest = max(latest, now + wait)
            assert given[principal] <= burst + rate * (now + wait) + 1e-6
        else:
            assert buckets.reserve(principal, tokens, now + wait + 1e-6, longest=longest)[0], (
                "a retry after the returned wait must succeed"
            )
            return


def test_buckets_in_memory_are_bounded() -> None:
    buckets = TokenBuckets(10.0, 20.0, principals=3)
    for number in range(10):
        buckets.reserve(f"user-{number}", 1.0, float(number), longest=0.0)
        assert len(buckets) <= 3
    buckets.reserve("user-9", 1.0, 9.0, longest=0.0)
    assert buckets.level("user-9", 9.0) == 18.0
    buckets.refund("user-9", 1.0, 9.0)
    assert buckets.level("user-9", 9.0) == 19.0


def test_full_buckets_are_dropped_before_that_of_a_busy_principal() -> None:
    """Otherwise the principal would have a full bucket again as soon as others send requests."""
    buckets = TokenBuckets(10.0, 20.0, principals=3)
    buckets.reserve("busy", 20.0, 0.0, longest=0.0)
    for idle in ("one", "two"):
        buckets.reserve(idle, 1.0, 0.0, longest=0.0)
    buckets.reserve("new", 1.0, 1.0, longest=0.0)
    assert (len(buckets), buckets.level("busy", 1.0), buckets.level("new", 1.0)) == (2, 10.0, 19.0)
