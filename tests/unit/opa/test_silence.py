# SPDX-License-Identifier: Apache-2.0
"""Callers about which no guardrail can speak: when they are evaluated, and when OPA is not asked about them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from gateway.access.decisions.policy import PolicyActor, PolicyAnswer, PolicyAnswers, PolicyRequest, Reason
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.obligations.kinds import NoVending
from gateway.obligations.merging import Obligations
from gateway.opa.cache import CachedPolicies
from gateway.opa.explanation import Proof
from tests.support.policies.opa_questions import REQUEST

REVISION = "rules.data"


@dataclass
class Policies:
    """An OPA that returns a configured proof and counts requests."""

    answer: PolicyAnswer = PolicyAnswer(allow=True)
    proof: Proof | None = Proof("rules", "data")
    current: str | None = REVISION
    broken: bool = False
    asked: int = 0
    compiled: list[PolicyActor] = field(default_factory=list)
    meanwhile: Callable[[], Any] | None = None
    release: asyncio.Event | None = None
    steady: float = 0.0

    async def evaluate(self, request: PolicyRequest) -> PolicyAnswers:
        self.asked += 1
        return PolicyAnswers(decisions=(self.answer,) * len(request.questions))

    async def revision(self) -> str | None:
        return self.current

    async def silence(self, actor: PolicyActor) -> Proof | None:
        self.compiled.append(actor)
        if self.release is not None:
            await self.release.wait()
        if self.meanwhile is not None:
            self.meanwhile()
        if self.broken:
            raise DecisionEngineUnavailable("OPA answered with status 401")
        return self.proof

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None: ...

    async def cache(self, callers: int = 100) -> CachedPolicies:
        cache = CachedPolicies(
            self, entries=10, observer=self, silent_callers=callers, silent_at_question=3, clock=lambda: self.steady
        )
        await cache.look()
        return cache


def of(actor: str = "oidc~alice", **more: Any) -> PolicyRequest:
    return msgspec.structs.replace(REQUEST, actor=msgspec.structs.replace(REQUEST.actor, id=actor, **more))


async def ask(cache: CachedPolicies, times: int = 1, request: PolicyRequest = REQUEST) -> tuple[PolicyAnswer, ...]:
    answers: tuple[PolicyAnswer, ...] = ()
    for _ in range(times):
        answers = await cache.decide(request)
        for _ in range(10):
            await asyncio.sleep(0)
    return answers


async def test_a_returning_caller_is_evaluated_once_and_asked_about_no_more() -> None:
    here = Policies()
    cache = await here.cache()
    await ask(cache, 2)
    assert here.compiled == []
    await ask(cache)
    assert (here.compiled, here.asked) == ([REQUEST.actor], 3)
    three = msgspec.structs.replace(REQUEST, questions=REQUEST.questions * 3)
    assert await ask(cache, 5, three) == (PolicyAnswer(allow=True),) * 3
    assert (len(here.compiled), here.asked) == (1, 3)


async def test_without_a_proof_every_question_is_asked_and_the_caller_is_not_evaluated_again() -> None:
    here = Policies(proof=None)
    cache = await here.cache()
    await ask(cache, 10)
    assert (len(here.compiled), here.asked) == (1, 10)


async def test_the_setting_switches_partial_evaluation_off() -> None:
    here = Policies()
    cache = await here.cache(callers=0)
    await ask(cache, 10)
    assert (here.compiled, here.asked) == ([], 10)


@pytest.mark.threat("LG-DEC-34")
@pytest.mark.parametrize(
    "other",
    [
        {"actor": "oidc~bob"},
        {"kind": "system"},
        {"assumed_role": "r"},
        {"roles": ()},
        {"roles": ("r", "s")},
        {"engine": "e"},
        {"subject_proven": False},
        {"asked_by": "b"},
        {"groups_known": False},
    ],
)
async def test_every_field_of_the_caller_is_part_of_the_proof(other: dict[str, Any]) -> None:
    here = Policies()
    cache = await here.cache()
    await ask(cache, 4)
    before = here.asked
    await ask(cache, request=of(**other))
    assert here.asked == before + 1


@pytest.mark.parametrize(
    "answer",
    [
        PolicyAnswer(allow=False, reasons=(Reason(code="a", message="b"),)),
        PolicyAnswer(allow=True, obligations=Obligations.of(NoVending())),
    ],
)
async def test_a_caller_that_a_guardrail_spoke_about_is_not_evaluated(answer: PolicyAnswer) -> None:
    here = Policies(answer=answer)
    cache = await here.cache()
    assert await ask(cache, 10) == (answer,)
    assert (here.compiled, here.asked) == ([], 10)


@pytest.mark.threat("LG-DEC-34")
async def test_another_revision_ends_every_proof() -> None:
    here = Policies()
    cache = await here.cache()
    await ask(cache, 4)
    here.current = "rules.other"
    await cache.look()
    await ask(cache)
    assert here.asked == 4


async def test_no_proof_is_used_when_the_last_read_of_the_revision_is_a_second_old() -> None:
    here = Policies()
    cache = await here.cache()
    await ask(cache, 4)
    here.steady = 1.0
    await ask(cache)
    assert here.asked == 4
    await cache.look()
    await ask(cache)
    assert here.asked == 4


@pytest.mark.parametrize("proof", [Proof("other", "data"), Proof("rules", "other"), Proof(None, "other")])
async def test_a_proof_of_another_revision_is_not_used_and_the_caller_is_evaluated_again(proof: Proof) -> None:
    here = Policies(proof=proof)
    cache = await here.cache()
    await ask(cache, 5)
    assert (len(here.compiled), here.asked) == (1, 5)
    here.steady, here.proof = 1.5, Proof("rules", "data")
    await cache.look()
    await ask(cache, 3)
    assert (len(here.compiled), here.asked) == (2, 6)


async def test_a_revision_that_changes_during_the_evaluation_makes_the_proof_unusable() -> None:
    here = Policies()
    cache = await here.cache()
    here.meanwhile = lambda: setattr(here, "current", "rules.other")
    await ask(cache, 5)
    assert here.asked == 5


async def test_a_revision_that_the_cache_sees_during_the_evaluation_makes_the_proof_unusable() -> None:
    here = Policies()
    cache = await here.cache()
    here.release = asyncio.Event()
    await ask(cache, 3)
    here.current = "rules.other"
    await cache.look()
    here.current = REVISION
    await cache.look()
    here.release.set()
    await ask(cache, 2)
    assert here.asked == 5


async def test_a_proof_is_not_used_if_the_known_revision_is_another_at_its_end() -> None:
    """The last read of the cache is older than that of the evaluation, or was answered by another server."""
    here = Policies()
    cache = await here.cache()
    here.current = "rules.other"
    await cache.look()
    here.current = REVISION
    await ask(cache, 5)
    assert (len(here.compiled), here.asked) == (1, 5)
    here.current = "rules.other"
    await ask(cache, 2)
    assert here.asked == 7


async def test_a_proof_of_a_forgotten_caller_is_not_used() -> None:
    """The revision changes and changes back while OPA evaluates: the same caller has another entry."""
    here = Policies(release=asyncio.Event())
    cache = await here.cache()
    await ask(cache, 3)
    assert cache._silent is not None
    cache._silent.clear()
    await ask(cache, 1)
    before = dict(cache._silent._seen)
    assert here.release is not None
    here.release.set()
    await ask(cache, 1)
    assert cache._silent._seen[REQUEST.actor] is before[REQUEST.actor]
    assert not cache._silent.has(REQUEST.actor)
    assert here.asked == 5


@pytest.mark.parametrize(("proof", "seconds"), [(Proof("rules", "data"), 600), (Proof(None, "data"), 60)])
async def test_a_proof_ends_after_its_time(proof: Proof, seconds: int) -> None:
    here = Policies(proof=proof)
    cache = await here.cache()
    await ask(cache, 4)
    for moment, asked, compiled in ((seconds - 1, 3, 1), (seconds, 4, 1), (seconds, 5, 1), (seconds, 6, 2)):
        here.steady = moment
        await cache.look()
        await ask(cache)
        assert (here.asked, len(here.compiled)) == (asked, compiled)


async def test_one_evaluation_runs_at_a_time_and_requests_do_not_wait_for_it() -> None:
    here = Policies(release=asyncio.Event())
    cache = await here.cache()
    await ask(cache, 5)
    await ask(cache, 5, of("oidc~bob"))
    assert (here.asked, len(here.compiled)) == (10, 1)
    assert here.release is not None
    here.release.set()
    await ask(cache, 2)
    assert here.asked == 11
    await ask(cache, 1, of("oidc~bob"))
    assert len(here.compiled) == 2


async def test_a_failed_evaluation_is_repeated_after_a_growing_pause() -> None:
    here = Policies(broken=True)
    cache = await here.cache()
    at = []
    for tenth in range(200):
        here.steady = tenth / 10
        await cache.look()
        before = len(here.compiled)
        await ask(cache, 1, of(f"oidc~{tenth % 3}"))
        if len(here.compiled) > before:
            at.append(here.steady)
    pauses = [round(later - sooner, 1) for sooner, later in zip(at, at[1:], strict=False)]
    assert pauses == sorted(pauses)
    assert len(pauses) == 4
    assert pauses[0] < 1.2


async def test_a_guardrail_that_speaks_about_all_callers_ends_the_evaluations() -> None:
    here = Policies(proof=None)
    cache = await here.cache()
    for caller in range(40):
        await ask(cache, 4, of(f"oidc~{caller}"))
    assert len(here.compiled) == 16
    here.current = "rules.other"
    await cache.look()
    await ask(cache, 4)
    assert len(here.compiled) == 17


async def test_the_callers_are_bounded() -> None:
    here = Policies()
    cache = await here.cache(callers=5)
    for caller in range(20):
        await ask(cache, 4, of(f"oidc~{caller}"))
    assert cache._silent is not None
    assert len(cache._silent._seen) == 5


async def test_a_running_evaluation_ends_with_the_cache() -> None:
    here = Policies(release=asyncio.Event())
    cache = await here.cache()
    await ask(cache, 3)
    assert cache._silent is not None
    running = cache._silent._running
    watching = asyncio.create_task(cache.watch())
    await asyncio.sleep(0)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert running is not None and running.cancelled()
