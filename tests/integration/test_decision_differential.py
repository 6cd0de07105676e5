# SPDX-License-Identifier: Apache-2.0
"""Differential test with random tuples and checks. Six evaluators must agree: single checks of OpenFGA, batches, the
checks of the door and its lists, cached results, the evaluation of the row authorizer, and plain recursion over the
compiled model.

The tuples include some that no row would require: second parents, cyclic roles, public flags, and grants that are
expired or expire at exactly this time.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.access.actor import Actor
from gateway.access.nouns.refs import ObjectKey, ObjectType, column_key
from gateway.access.nouns.relations import Can
from gateway.access.ports import Pin, Question
from gateway.fga.cache import CachedRelationships
from gateway.fga.client import FgaClient
from gateway.fga.evaluation import Evaluation, HeldTuple, ModelRules
from gateway.fga.model import StoreAndModel, push_model
from gateway.fga.relationships import FgaRelationships
from gateway.fga.wire import Condition, FgaTuple
from tests.support.rows.naive import Naive, Tuple, the_model
from tests.support.servers.openfga_server import KEY, endpoint

pytestmark = pytest.mark.generated

__all__ = ["endpoint"]  # a fixture

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
ENDS = {"over": NOW - timedelta(seconds=1), "now": NOW, "later": NOW + timedelta(seconds=1)}
MODEL = the_model()
RULES = {each["type"]: each for each in MODEL["type_definitions"]}
OBJECTS = [
    ("server", 0), ("project", 0), ("project", 1), ("warehouse", 0), ("warehouse", 1), ("namespace", 0),
    ("namespace", 1), ("namespace", 2), ("table", 0), ("table", 1), ("column", 0), ("column", 1), ("column", 2),
    ("view", 0), ("generic_table", 0), ("role", 0), ("role", 1), ("role", 2),
]  # fmt: skip
USERS = 3
QUESTIONS = 100
SINGLE = 5

ObjectPosition = tuple[str, int]
_worlds = itertools.count()


@dataclass(frozen=True)
class Written:
    """A tuple before its world has a name. `subject` is a place, the members of a role, a user's number, or `*`."""

    subject: str
    relation: str
    on: ObjectPosition
    end: str | None


def _direct(position: ObjectPosition) -> list[Written]:
    """Return every tuple that the model admits on an object, except cyclic nesting of namespaces."""
    kind, number = position
    found: list[Written] = []
    metadata: Mapping[str, Any] = (RULES[kind].get("metadata") or {}).get("relations") or {}
    for relation, about in metadata.items():
        for subject in about.get("directly_related_user_types") or ():
            type_name, ends = subject["type"], list(ENDS) if "condition" in subject else [None]
            if "wildcard" in subject:
                names = [f"{type_name}:*"]
            elif type_name == "user":
                names = [f"user:{each}" for each in range(USERS)]
            else:
                below = number if type_name == kind == "namespace" else len(OBJECTS)
                suffix = f"#{subject['relation']}" if "relation" in subject else ""
                names = [f"{t}:{n}{suffix}" for t, n in OBJECTS if t == type_name and n < below]
            names = [name for name in names if name != f"{kind}:{number}#{relation}"]
            found += [Written(name, relation, position, end) for name in names for end in ends]
    return found


POSSIBLE = [written for position in OBJECTS for written in _direct(position)]
EDGES = [each for each in POSSIBLE if each.relation in ("server", "project", "parent")]
GRANTS = [each for each in POSSIBLE if each not in EDGES]
DECIDED = set(Can)
CHECKED = [
    (Can(relation), position)
    for position in OBJECTS
    for relation in RULES[position[0]].get("relations", ())
    if relation in DECIDED
]
CASES = st.lists(st.tuples(st.integers(0, USERS), st.sampled_from(CHECKED)), min_size=QUESTIONS, max_size=QUESTIONS)


class World:
    """Randomly drawn tuples, with object names that no other world uses."""

    def __init__(self, edges: list[Written], grants: list[Written]) -> None:
        self._name = f"w{next(_worlds)}"
        # Most objects have their regular parent, so that rights are inherited.
        self.tuples: dict[Tuple, datetime | None] = {}
        for kind, number in OBJECTS:
            fitting = [each for each in EDGES if each.on == (kind, number)]
            if fitting:
                self._add(fitting[number % len(fitting)])
        for written in (*edges, *grants):
            self._add(written)

    def _add(self, written: Written) -> None:
        key = (self._subject(written.subject), written.relation, self.on(written.on))
        self.tuples[key] = ENDS[written.end] if written.end else None

    def _subject(self, text: str) -> str:
        type_name, _, rest = text.partition(":")
        number, hash_, relation = rest.partition("#")
        if number == "*":
            return text
        if type_name == "user":
            return f"user:{self.user(int(number))}"
        return f"{self.on((type_name, int(number)))}{hash_}{relation}"

    def user(self, number: int) -> str:
        """Return the id of a user as tokens contain it."""
        return f"oidc~{self._name}-{number}"

    def id(self, position: ObjectPosition) -> str:
        """Return the id of an object. A column's id names one of two tables, whatever its parent is."""
        kind, number = position
        if kind == "column":
            return column_key(self.id(("table", number % 2)), number + 1).id
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self._name} {position}"))

    def on(self, position: ObjectPosition) -> str:
        """Return the object's name in OpenFGA."""
        return f"{position[0]}:{self.id(position)}"

    def stored(self) -> list[FgaTuple]:
        """Return the tuples to write to OpenFGA."""
        return [FgaTuple(*key, None if end is None else _until(end)) for key, end in self.tuples.items()]


def _until(end: datetime) -> Condition:
    return Condition("unexpired", {"expires_at": end.isoformat()})


class Silent:
    """Cache observer that discards everything."""

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        """Ignore it."""


async def compare(
    at: str, pushed: StoreAndModel, world: World, cases: list[tuple[int, tuple[Can, ObjectPosition]]]
) -> int:
    """Check all cases in every way; return the number of allowed ones. The user number `USERS` is an assumed role."""
    client = FgaClient(at, KEY, pushed.store_id, pushed.model_id, timeout_s=30)
    cached = CachedRelationships(
        FgaRelationships(client), model_id=lambda: client.model_id, entries=1000, seconds=60, observer=Silent()
    )
    pin = Pin(uuid.uuid4(), uuid.uuid4(), None)
    try:
        stored = world.stored()
        for start in range(0, len(stored), 100):
            await client.write(stored[start : start + 100])
        yes = 0
        for number in sorted({number for number, _ in cases}):
            some = [each for who, each in cases if who == number]
            role = ("role", 0)
            assumed = number == USERS
            actor = Actor.user(world.user(number), name=None)
            tuples = dict(world.tuples)
            name = f"user:{world.user(number)}"
            if assumed:
                actor = Actor(kind=actor.kind, id=actor.id, assumed_role=uuid.UUID(world.id(role)))
                name = "user:somebody-in-the-role-and-nothing-else"
                tuples[name, "assignee", world.on(role)] = None
            naive = Naive(MODEL, tuples, NOW)
            expected = [naive.holds(name, can.value, world.on(position)) for can, position in some]
            held = [HeldTuple(*key, end) for key, end in tuples.items()]
            own = Evaluation(ModelRules(MODEL), held, name, NOW)
            evaluated = [own.holds(can.value, world.on(position)) for can, position in some]
            assert evaluated == expected, _differing(some, expected, world)
            questions = [Question(can, ObjectKey(ObjectType(p[0]), world.id(p)), pin.revision) for can, p in some]
            first = await cached.check(actor, questions, now=NOW, pin=pin)
            assert first == expected, _differing(some, expected, world)
            # Again from the cache, mixed with checks that are not cached.
            response = dict(zip(questions, expected, strict=True))
            again = [question for question in questions if response[question]] + questions[:SINGLE]
            assert await cached.check(actor, again, now=NOW, pin=pin) == [response[question] for question in again]
            if not assumed:
                singles = [(name, can.value, world.on(position)) for can, position in some[:SINGLE]]
                assert await one_by_one(at, pushed, singles) == expected[:SINGLE]
            yes += sum(expected)
        return yes
    finally:
        await client.aclose()


async def one_by_one(at: str, pushed: StoreAndModel, singles: list[Tuple]) -> list[bool]:
    """Send single checks to OpenFGA's API without the gateway's client."""
    answers = []
    headers = {"Authorization": f"Bearer {KEY}"}
    async with aiohttp.ClientSession(headers=headers) as http:
        for user, relation, on in singles:
            body = {
                "authorization_model_id": pushed.model_id,
                "tuple_key": {"user": user, "relation": relation, "object": on},
                "context": {"current_time": NOW.isoformat()},
            }
            async with http.post(f"{at}/stores/{pushed.store_id}/check", json=body) as answer:
                response = await answer.json()
                # A conditional tuple without its context is an error; with the context, every check is allowed or
                # denied.
                answers.append(response["allowed"])
    return answers


def _differing(cases: object, expected: object, world: World) -> str:
    return f"{cases} expected {expected} in {world.tuples}"


def agree(at: str, examples: int) -> None:
    """Compare the evaluators in this number of worlds, with `QUESTIONS` checks each.

    Without `--seed` every run is the same.
    """
    pushed = asyncio.run(push_model(at, KEY, "random-worlds"))
    counted = {"cases": 0, "yes": 0}

    @settings(
        max_examples=examples,
        database=None,
        suppress_health_check=[*settings().suppress_health_check, HealthCheck.large_base_example],
    )
    @given(
        st.lists(st.sampled_from(EDGES), max_size=4),
        st.lists(st.sampled_from(GRANTS), min_size=5, max_size=40),
        CASES,
    )
    def run(edges: list[Written], grants: list[Written], cases: list[tuple[int, tuple[Can, ObjectPosition]]]) -> None:
        counted["yes"] += asyncio.run(compare(at, pushed, World(edges, grants), cases))
        counted["cases"] += len(cases)

    run()
    assert counted["cases"] >= examples * QUESTIONS
    assert counted["yes"] > counted["cases"] / 50, "the random cases contain too few allows"


@pytest.mark.threat("LG-DIS-15")
@pytest.mark.timeout(300)
def test_2000_random_decisions_agree(endpoint: str) -> None:
    agree(endpoint, 20)


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_100000_random_decisions_agree(endpoint: str) -> None:
    agree(endpoint, 1000)
