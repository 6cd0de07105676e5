# SPDX-License-Identifier: Apache-2.0
"""The cache of OpenFGA answers, above all the cases that are not cached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.ports import Pin, Question
from gateway.fga.cache import CachedRelationships

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
PIN = Pin(revision=UUID(int=1), time_boxes=UUID(int=2), next_expiry=None)
ALICE = Actor.user("oidc~alice")
TABLE = ObjectKey(ObjectType.TABLE, "t")
READ = Question(Can.READ_DATA, TABLE, UUID(int=3))
WRITE = Question(Can.WRITE_DATA, TABLE, UUID(int=3))
PROJECT = Question(Can.GET_METADATA, ObjectKey(ObjectType.PROJECT, "p"))


@dataclass
class Engine:
    """An OpenFGA that allows `allowed` and counts its checks."""

    allowed: set[Question] = field(default_factory=set)
    calls: list[tuple[Question, ...]] = field(default_factory=list)
    meanwhile: Any = None

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        self.calls.append(tuple(questions))
        if self.meanwhile is not None:
            self.meanwhile()
        return [question in self.allowed for question in questions]


@dataclass
class Setting:
    engine: Engine
    cache: CachedRelationships
    model: list[str]
    time: list[float]


def setting(*allowed: Question, entries: int = 100, seconds: float = 60.0) -> Setting:
    engine = Engine(set(allowed))
    model, time = ["model-1"], [0.0]

    class Silent:
        def count_lookups(self, cache: str, *, hits: int, misses: int) -> None: ...

    cache = CachedRelationships(
        engine,
        model_id=lambda: model[0],
        entries=entries,
        seconds=seconds,
        observer=Silent(),
        clock=lambda: time[0],
    )
    return Setting(engine, cache, model, time)


async def test_an_allow_is_cached() -> None:
    here = setting(READ, PROJECT)
    for _ in range(3):
        assert await here.cache.check(ALICE, [READ, PROJECT], now=NOON, pin=PIN) == [True, True]
    assert here.engine.calls == [(READ, PROJECT)]


async def test_a_refusal_is_not_cached_so_that_a_new_grant_applies_at_once() -> None:
    here = setting(READ)
    assert await here.cache.check(ALICE, [READ, WRITE], now=NOON, pin=PIN) == [True, False]
    here.engine.allowed.add(WRITE)
    assert await here.cache.check(ALICE, [WRITE, READ], now=NOON, pin=PIN) == [True, True]
    assert here.engine.calls == [(READ, WRITE), (WRITE,)]


OTHERS: dict[str, tuple[Actor, Question, Pin]] = {
    "another server revision": (ALICE, READ, replace(PIN, revision=UUID(int=9))),
    "another warehouse revision": (ALICE, replace(READ, within=UUID(int=9)), PIN),
    "another grant with an expiry": (ALICE, READ, replace(PIN, time_boxes=UUID(int=9))),
    "another user": (Actor.user("oidc~bob"), READ, PIN),
    "under a role": (msgspec.structs.replace(ALICE, assumed_role=uuid4()), READ, PIN),
    "by another group": (msgspec.structs.replace(ALICE, group_roles=(str(UUID(int=7)),)), READ, PIN),
    "another relation": (ALICE, WRITE, PIN),
    "another object": (ALICE, replace(READ, object=ObjectKey(ObjectType.TABLE, "u")), PIN),
    "the same id of another type": (ALICE, replace(READ, object=ObjectKey(ObjectType.VIEW, "t")), PIN),
}


@pytest.mark.threat("LG-DEC-14")
@pytest.mark.parametrize("case", OTHERS)
async def test_every_input_of_the_answer_is_part_of_the_cache_key(case: str) -> None:
    here = setting(READ)
    await here.cache.check(ALICE, [READ], now=NOON, pin=PIN)
    here.engine.allowed.clear()
    actor, question, pin = OTHERS[case]
    assert await here.cache.check(actor, [question], now=NOON, pin=pin) == [False]


@pytest.mark.threat("LG-DIS-13")
async def test_a_model_change_invalidates_cached_answers() -> None:
    here = setting(READ)
    await here.cache.check(ALICE, [READ], now=NOON, pin=PIN)
    here.engine.allowed.clear()
    here.model[0] = "model-2"
    assert await here.cache.check(ALICE, [READ], now=NOON, pin=PIN) == [False]


async def test_an_answer_received_after_a_model_change_is_not_cached() -> None:
    here = setting(READ)
    here.engine.meanwhile = lambda: here.model.__setitem__(0, "model-2")
    await here.cache.check(ALICE, [READ], now=NOON, pin=PIN)
    here.engine.meanwhile = None
    here.engine.allowed.clear()
    for model in ("model-1", "model-2"):
        here.model[0] = model
        assert await here.cache.check(ALICE, [READ], now=NOON, pin=PIN) == [False]


async def test_a_cached_allow_expires_with_the_first_grant_behind_it() -> None:
    here = setting(READ)
    until = NOON + timedelta(seconds=5)
    pin = replace(PIN, next_expiry=until)
    await here.cache.check(ALICE, [READ], now=NOON, pin=pin)
    here.engine.allowed.clear()
    assert await here.cache.check(ALICE, [READ], now=until - timedelta(microseconds=1), pin=pin) == [True]
    assert await here.cache.check(ALICE, [READ], now=until, pin=pin) == [False]


async def test_a_cached_allow_expires_after_its_maximum_age() -> None:
    here = setting(READ, seconds=60)
    await here.cache.check(ALICE, [READ], now=NOON, pin=PIN)
    here.engine.allowed.clear()
    here.time[0] = 59.9
    assert await here.cache.check(ALICE, [READ], now=NOON, pin=PIN) == [True]
    here.time[0] = 60.0
    assert await here.cache.check(ALICE, [READ], now=NOON, pin=PIN) == [False]


@pytest.mark.threat("LG-DIS-05")
async def test_a_cache_hit_does_not_extend_the_lifetime() -> None:
    here = setting(READ, seconds=60)
    for second in range(0, 60, 10):
        here.time[0] = second
        await here.cache.check(ALICE, [READ], now=NOON, pin=PIN)
    here.engine.allowed.clear()
    here.time[0] = 60.0
    assert await here.cache.check(ALICE, [READ], now=NOON, pin=PIN) == [False]


@pytest.mark.parametrize(
    ("question", "pin", "seconds"),
    [(READ, None, 60), (replace(READ, within=None), PIN, 60), (READ, PIN, 0)],
    ids=["no revision", "a table of no known warehouse", "cache is disabled"],
)
async def test_an_allow_without_a_revision_is_not_cached(question: Question, pin: Pin | None, seconds: float) -> None:
    here = setting(question, seconds=seconds)
    await here.cache.check(ALICE, [question], now=NOON, pin=pin)
    here.engine.allowed.clear()
    assert await here.cache.check(ALICE, [question], now=NOON, pin=pin) == [False]


@pytest.mark.threat("LG-DIS-07")
@pytest.mark.parametrize("answer", [[1], ["yes"], [True, True], []])
async def test_an_invalid_answer_is_rejected_and_not_cached(answer: Any) -> None:
    here = setting()

    class Odd:
        async def check(self, *_: Any, **__: Any) -> Any:
            return answer

    here.cache._relationships = Odd()
    checked = await here.cache.check(ALICE, [READ], now=NOON, pin=PIN)
    assert checked == answer if len(answer) != 1 else checked == [False]
    here.cache._relationships = here.engine
    assert await here.cache.check(ALICE, [READ], now=NOON, pin=PIN) == [False]


@pytest.mark.threat("LG-DIS-07")
async def test_an_outage_is_not_an_answer() -> None:
    here = setting(READ)

    def down() -> None:
        raise DecisionEngineUnavailable("down")

    here.engine.meanwhile = down
    with pytest.raises(DecisionEngineUnavailable):
        await here.cache.check(ALICE, [READ], now=NOON, pin=PIN)


async def test_the_cache_is_bounded_and_evicts_the_least_recently_used_entry() -> None:
    questions = [Question(Can.READ_DATA, ObjectKey(ObjectType.TABLE, str(n)), UUID(int=3)) for n in range(3)]
    here = setting(*questions, entries=2)
    for question in (questions[0], questions[1], questions[0], questions[2], questions[0], questions[1]):
        await here.cache.check(ALICE, [question], now=NOON, pin=PIN)
    assert here.engine.calls == [(questions[0],), (questions[1],), (questions[2],), (questions[1],)]


@given(st.data())
async def test_cache_and_engine_agree_under_changes_of_the_revision(data: st.DataObject) -> None:
    """Any sequence of grants (no revision change), revocations (revision change) and checks."""
    questions = [
        Question(relation, ObjectKey(ObjectType.TABLE, name))
        for relation in (Can.READ_DATA, Can.WRITE_DATA)
        for name in ("a", "b")
    ]
    here = setting(entries=data.draw(st.integers(1, 5)))
    within, server = 1, 1
    for _ in range(data.draw(st.integers(1, 30))):
        step = data.draw(st.sampled_from(["grant", "revoke within", "revoke outside", "ask"]))
        chosen = data.draw(st.sampled_from(questions))
        if step == "grant":
            here.engine.allowed.add(chosen)
        elif step == "ask":
            calls = [replace(question, within=UUID(int=within)) for question in (chosen, questions[0])]
            pin = replace(PIN, revision=UUID(int=server))
            answers = await here.cache.check(ALICE, calls, now=NOON, pin=pin)
            assert answers == [question in here.engine.allowed for question in calls]
        else:
            here.engine.allowed.discard(chosen)
            within, server = (within + 1, server) if step == "revoke within" else (within, server + 1)
