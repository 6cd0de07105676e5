# SPDX-License-Identifier: Apache-2.0
"""Caching of OPA decisions with a real OPA: which ones are cached, and that changed policy data or a restart
ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from gateway.access.decisions.policy import PolicyActor, PolicyAnswers, PolicyRequest
from gateway.opa.cache import CachedPolicies
from gateway.opa.decider import OpaDecider
from gateway.opa.explanation import Proof
from tests.support.servers.opa_serving import (
    CONTRACTORS,
    GATEWAY,
    OPERATOR,
    SHIPPED,
    SUNDAY_NIGHT,
    call,
    request,
    serving,
)

pytestmark = [pytest.mark.chaos, pytest.mark.integration]

MEMORY = "/v1/data/policy_data/memory"
_TOKENS = {"LAKEGATE_OPA_GATEWAY_TOKEN": GATEWAY, "LAKEGATE_OPA_OPERATOR_TOKEN": OPERATOR}


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    with serving(**_TOKENS, LAKEGATE_OPA_REVISION="1") as address:
        yield address


@pytest.fixture
def endpoint(served: str) -> Iterator[str]:
    """Return the server with decisions that are cacheable for a minute; reset it after the test."""
    assert call(served, "PUT", MEMORY, {"answers_last_seconds": 60}, OPERATOR) == 204
    yield served
    assert call(served, "PUT", MEMORY, {"answers_last_seconds": 1}, OPERATOR) == 204
    assert call(served, "PUT", CONTRACTORS, SHIPPED["contractors"], OPERATOR) == 204


class Counting:
    """A decider that counts the requests that reach it."""

    def __init__(self, decider: OpaDecider) -> None:
        self._decider = decider
        self.calls = 0

    async def evaluate(self, requested: PolicyRequest) -> PolicyAnswers:
        self.calls += 1
        return await self._decider.evaluate(requested)

    async def revision(self) -> str | None:
        return await self._decider.revision()

    async def silence(self, actor: PolicyActor) -> Proof | None:
        return await self._decider.silence(actor)

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None: ...


@pytest.fixture
async def counting(endpoint: str) -> AsyncIterator[Counting]:
    decider = OpaDecider(endpoint, GATEWAY, timeout_s=30)
    yield Counting(decider)
    await decider.aclose()


def cached_policies(counting: Counting) -> CachedPolicies:
    return CachedPolicies(counting, entries=10, observer=counting, poll_seconds=3600)


async def test_time_independent_decision_is_requested_once(counting: Counting) -> None:
    cache = cached_policies(counting)
    await cache.look()
    for second in range(5):
        [answer] = await cache.decide(request(at=f"2026-03-04T12:00:0{second}Z"))
        assert answer.allow
    assert counting.calls == 1
    await cache.decide(request(at="2026-03-04T12:01:00Z"))
    assert counting.calls == 2


async def test_changed_policy_data_applies_at_the_next_revision_check(counting: Counting, endpoint: str) -> None:
    cache = cached_policies(counting)
    await cache.look()
    requested = request(at=SUNDAY_NIGHT)
    assert (await cache.decide(requested))[0].allow
    now = {**SHIPPED["contractors"], "users": ["oidc~contractor"]}
    assert call(endpoint, "PUT", CONTRACTORS, now, OPERATOR) == 204
    await cache.look()
    assert not (await cache.decide(requested))[0].allow


async def test_time_dependent_contractor_decisions_are_never_cached(counting: Counting, endpoint: str) -> None:
    now = {**SHIPPED["contractors"], "users": ["oidc~contractor"]}
    assert call(endpoint, "PUT", CONTRACTORS, now, OPERATOR) == 204
    cache = cached_policies(counting)
    await cache.look()
    for _ in range(3):
        assert (await cache.decide(request()))[0].allow
    assert counting.calls == 3
    assert not (await cache.decide(request(at=SUNDAY_NIGHT)))[0].allow


async def test_an_ordinary_caller_needs_no_question_until_it_becomes_a_contractor(
    counting: Counting, endpoint: str
) -> None:
    cache = CachedPolicies(
        counting, entries=10, observer=counting, silent_callers=10, silent_at_question=3, poll_seconds=3600
    )
    await cache.look()
    assert (await counting.silence(request().actor)) is not None
    for minute in range(10, 60):
        assert (await cache.decide(request(at=f"2026-03-04T12:{minute}:00Z")))[0].allow
        await asyncio.sleep(0.02)
    asked = counting.calls
    for _ in range(3):
        assert (await cache.decide(request(at=SUNDAY_NIGHT)))[0].allow
    assert counting.calls == asked < 40
    now = {**SHIPPED["contractors"], "users": ["oidc~contractor"]}
    assert call(endpoint, "PUT", CONTRACTORS, now, OPERATOR) == 204
    assert (await counting.silence(request().actor)) is None
    await cache.look()
    assert not (await cache.decide(request(at=SUNDAY_NIGHT)))[0].allow


async def test_decisions_are_cached_only_under_the_policy_revision_of_opa() -> None:
    seen = []
    for name in ("1", "2", ""):
        with serving(**_TOKENS, LAKEGATE_OPA_REVISION=name) as address:
            decider = OpaDecider(address, GATEWAY, timeout_s=30)
            one, two = await decider.revision(), await decider.revision()
            await decider.aclose()
        assert one == two
        seen.append(one)
    assert len(set(seen)) == 3
    assert (seen[0] is None, seen[1] is None, seen[2]) == (False, False, None)
