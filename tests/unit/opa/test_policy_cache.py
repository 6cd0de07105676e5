# SPDX-License-Identifier: Apache-2.0
"""The cache of policy answers, and the cases that are not cached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from gateway.access.decisions.policy import (
    PolicyActor,
    PolicyAnswer,
    PolicyAnswers,
    PolicyRequest,
)
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.opa.cache import CachedPolicies
from gateway.opa.explanation import Proof
from tests.support.policies.opa_questions import REQUEST

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
ALLOWED = (PolicyAnswer(allow=True),)


@dataclass
class Policies:
    """An OPA that returns configured answers and counts requests."""

    answers: PolicyAnswers = PolicyAnswers(decisions=ALLOWED, valid_until=NOON + timedelta(minutes=1), revision="1")
    current: str | None = "1"
    down: bool = False
    calls: int = 0
    meanwhile: Callable[[], None] | None = None
    steady: list[float] = field(default_factory=lambda: [0.0])

    async def evaluate(self, request: PolicyRequest) -> PolicyAnswers:
        self.calls += 1
        if self.meanwhile is not None:
            self.meanwhile()
        return self.answers

    async def revision(self) -> str | None:
        if self.down:
            raise DecisionEngineUnavailable("down")
        return self.current

    async def silence(self, actor: PolicyActor) -> Proof | None:
        raise AssertionError("the setting is off")

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None: ...

    async def cache(self, entries: int = 10) -> CachedPolicies:
        cache = CachedPolicies(self, entries=entries, observer=self, clock=lambda: self.steady[0])
        await cache.look()
        return cache


def at(moment: datetime, request: PolicyRequest = REQUEST, **more: Any) -> PolicyRequest:
    context = msgspec.structs.replace(
        request.context, time=moment.isoformat().replace("+00:00", "Z"), request_id=str(moment), **more
    )
    return msgspec.structs.replace(request, context=context)


async def test_a_cacheable_answer_is_requested_once_at_any_time_and_request_id() -> None:
    here = Policies()
    cache = await here.cache()
    for seconds in (0, 1, 59):
        assert await cache.decide(at(NOON + timedelta(seconds=seconds))) == ALLOWED
    assert here.calls == 1


async def test_a_cached_answer_expires_at_its_promised_time_by_the_input_clock() -> None:
    here = Policies()
    cache = await here.cache()
    await cache.decide(REQUEST)
    await cache.decide(at(NOON + timedelta(minutes=1)))
    assert here.calls == 2


async def test_an_answer_without_a_promised_time_is_not_cached() -> None:
    here = Policies(answers=PolicyAnswers(decisions=ALLOWED))
    cache = await here.cache()
    for _ in range(3):
        await cache.decide(REQUEST)
    assert here.calls == 3


def changed(request: PolicyRequest, path: tuple[str | int, ...], value: Any) -> PolicyRequest:
    """Return the request with one member replaced, by its path in the sent JSON."""
    tree = msgspec.to_builtins(request)
    inner = tree
    for step in path[:-1]:
        inner = inner[step]
    assert path[-1] in inner
    inner[path[-1]] = value
    return msgspec.convert(tree, PolicyRequest)


DIFFERENT: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "the caller": (("actor", "id"), "oidc~bob"),
    "the kind of caller": (("actor", "kind"), "system"),
    "the assumed role": (("actor", "assumed_role"), "r"),
    "the roles": (("actor", "roles"), []),
    "the user agent": (("context", "user_agent"), None),
    "the client address": (("context", "client_address"), "127.0.0.2"),
    "the operation": (("questions", 0, "operation"), "drop_table"),
    "the resource id": (("questions", 0, "resource", "id"), "u"),
    "the resource name": (("questions", 0, "resource", "name"), "u"),
    "the facts": (("questions", 0, "facts", "purge"), True),
    "the type of a fact": (("questions", 0, "facts", "purge"), 0),
}


@pytest.mark.parametrize("kind", DIFFERENT)
async def test_every_other_input_member_is_part_of_the_cache_key(kind: str) -> None:
    here = Policies()
    cache = await here.cache()
    await cache.decide(REQUEST)
    await cache.decide(changed(REQUEST, *DIFFERENT[kind]))
    assert here.calls == 2


async def test_a_policy_change_clears_the_cache() -> None:
    here = Policies()
    cache = await here.cache()
    await cache.decide(REQUEST)
    here.current = "2"
    await cache.look()
    await cache.decide(REQUEST)
    assert here.calls == 2
    here.current = "1"
    await cache.look()
    await cache.decide(REQUEST)
    assert here.calls == 3


@pytest.mark.parametrize("trouble", ["down", "unknown", "not looked at"])
async def test_an_unknown_policy_revision_disables_the_cache(trouble: str) -> None:
    here = Policies()
    cache = await here.cache()
    await cache.decide(REQUEST)
    if trouble == "not looked at":
        here.steady[0] = 2.0
    else:
        here.down, here.current = trouble == "down", None
        await cache.look()
    await cache.decide(REQUEST)
    await cache.decide(REQUEST)
    assert here.calls == 3


async def test_an_answer_given_during_a_policy_change_is_not_cached() -> None:
    here = Policies()
    cache = await here.cache()

    def change() -> None:
        cache._revision = "2"

    here.meanwhile = change
    await cache.decide(REQUEST)
    here.meanwhile = None
    for revision in ("1", "2"):
        cache._revision = revision
        before = here.calls
        await cache.decide(REQUEST)
        assert here.calls == before + 1


@pytest.mark.parametrize("by", ["2", None])
async def test_an_answer_of_an_intermediate_policy_revision_is_not_cached(by: str | None) -> None:
    """The policies were changed and changed back: both revision checks return the same revision."""
    here = Policies()
    here.answers = msgspec.structs.replace(here.answers, revision=by)
    cache = await here.cache()
    await cache.decide(REQUEST)
    await cache.look()
    await cache.decide(REQUEST)
    assert here.calls == 2


async def test_nothing_is_cached_before_the_policy_revision_is_known() -> None:
    here = Policies()
    cache = CachedPolicies(here, entries=10, observer=here, clock=lambda: here.steady[0])
    await cache.decide(REQUEST)
    await cache.decide(REQUEST)
    assert here.calls == 2


async def test_the_cache_is_bounded() -> None:
    here = Policies()
    cache = await here.cache(entries=5)
    for number in range(20):
        await cache.decide(changed(REQUEST, ("actor", "id"), f"oidc~{number}"))
    assert len(cache._kept) == 5
