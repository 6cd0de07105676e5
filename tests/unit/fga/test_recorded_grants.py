# SPDX-License-Identifier: Apache-2.0
"""Checks of write access that recorded grants answer with no."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import cast
from uuid import UUID, uuid4

import pytest

from gateway.access.actor import Actor
from gateway.access.ports import Pin, Question
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.relations import Can
from gateway.fga.cache import CachedRelationships
from gateway.fga.model_analysis import FollowedReaches
from gateway.fga.recorded_grants import RecordedRelationships

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
ALICE = Actor.user("oidc~alice")
TABLE = ObjectKey(ObjectType.TABLE, str(uuid4()))
NEEDED = frozenset({(ObjectType.TABLE, "modify")})
WRITE = Question(Can.WRITE_DATA, TABLE, uuid4())
READ = Question(Can.READ_DATA, TABLE, uuid4())


@dataclass
class Parts:
    """OpenFGA, the recorded grants and the model."""

    holds: bool = True
    recorded: bool = False
    needed: frozenset[tuple[ObjectType, str]] | None = NEEDED
    model_id: str = "m"
    model_after: str = "m"
    asked: list[Sequence[Question]] = field(default_factory=list)
    read: list[tuple[str, UUID, Collection[tuple[ObjectType, str]]]] = field(default_factory=list)

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        self.asked.append(questions)
        return [self.holds] * len(questions)

    async def holds_grant(self, caller: Actor, id: UUID, among: Collection[tuple[ObjectType, str]]) -> bool:
        self.read.append((caller.id, id, among))
        self.model_id = self.model_after
        return self.recorded

    async def grants_behind(
        self, model_id: str, type: ObjectType, relation: str
    ) -> frozenset[tuple[ObjectType, str]] | None:
        assert (model_id, relation) == ("m", "can_write_data")
        return self.needed

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None: ...

    def relationships(self) -> RecordedRelationships:
        return RecordedRelationships(
            self, reaches=cast(FollowedReaches, self), model_id=lambda: self.model_id, recorded=self.holds_grant
        )


async def test_write_access_without_a_recorded_grant_is_denied_without_a_check() -> None:
    parts = Parts()
    assert await parts.relationships().check(ALICE, [WRITE], now=NOW) == [False]
    assert parts.asked == []
    assert parts.read == [(ALICE.id, UUID(TABLE.id), NEEDED)]


@pytest.mark.parametrize("holds", [True, False])
async def test_a_recorded_grant_decides_nothing(holds: bool) -> None:
    parts = Parts(recorded=True, holds=holds)
    assert await parts.relationships().check(ALICE, [WRITE], now=NOW) == [holds]
    assert parts.asked == [[WRITE]]


@pytest.mark.parametrize(
    "questions",
    [
        [READ],
        [READ, WRITE],
        [WRITE, Question(Can.WRITE_DATA, ObjectKey(ObjectType.TABLE, str(uuid4())))],
        [replace(WRITE, above=(ObjectKey(ObjectType.NAMESPACE, str(uuid4())),))],
        [Question(Can.WRITE_DATA, ObjectKey(ObjectType.NAMESPACE, str(uuid4())))],
        [],
    ],
    ids=["read", "read and write", "two tables", "absent", "not a table", "none"],
)
async def test_other_checks_read_no_grants(questions: list[Question]) -> None:
    """The answer to a caller that does not see the object must not depend on its rows, nor the number of calls."""
    parts = Parts()
    assert await parts.relationships().check(ALICE, questions, now=NOW) == [True] * len(questions)
    assert (parts.asked, parts.read) == ([questions], [])


async def test_a_model_with_other_ways_to_write_access_is_always_checked() -> None:
    parts = Parts(needed=None)
    assert await parts.relationships().check(ALICE, [WRITE], now=NOW) == [True]
    assert parts.read == []


async def test_a_model_change_during_the_read_causes_a_check() -> None:
    parts = Parts(model_after="n")
    assert await parts.relationships().check(ALICE, [WRITE], now=NOW) == [True]


async def test_a_new_grant_is_effective_from_the_next_request_on() -> None:
    parts = Parts()
    cached = CachedRelationships(
        parts.relationships(), model_id=lambda: parts.model_id, entries=10, seconds=60, observer=parts
    )
    pin = Pin(uuid4(), uuid4(), None)
    assert await cached.check(ALICE, [READ], now=NOW, pin=pin) == [True]
    assert await cached.check(ALICE, [READ, WRITE], now=NOW, pin=pin) == [True, False]
    parts.recorded = True
    assert await cached.check(ALICE, [READ, WRITE], now=NOW, pin=pin) == [True, True]
    assert parts.asked == [[READ], [WRITE]]
