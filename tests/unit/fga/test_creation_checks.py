# SPDX-License-Identifier: Apache-2.0
"""Checks with the tuples of pending creations: when they are read, and what they can change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DatabaseUnavailable, DecisionEngineUnavailable
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.ports import Pin, Question
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.fga.cache import CachedRelationships
from gateway.fga.client import FgaClient
from gateway.fga.pending_checks import CreationAwareRelationships
from gateway.fga.relationships import FgaRelationships
from gateway.fga.wire import FgaTuple

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
ALICE = Actor.user("oidc~alice")
TABLE = ObjectKey(ObjectType.TABLE, str(uuid4()))
READ = Question(Can.READ_DATA, TABLE, UUID(int=3))
WRITE = Question(Can.WRITE_DATA, TABLE, UUID(int=3))
PIN = Pin(UUID(int=1), UUID(int=2), None)
OWNED = TupleKey(Principal(PrincipalType.USER, ALICE.id), "ownership", TABLE)


@dataclass
class Server:
    """A client of an OpenFGA that allows `allowed`, and everything beside the tuple of the creation."""

    allowed: set[str] = field(default_factory=set)
    calls: list[list[FgaTuple]] = field(default_factory=list)
    down: bool = False
    model_id: str = "m"

    async def batch_check(
        self, checks: Sequence[FgaTuple], *, contextual: Sequence[FgaTuple], **_: object
    ) -> list[bool]:
        if self.down and contextual:
            raise DecisionEngineUnavailable("down")
        self.calls.append(list(contextual))
        return [bool(contextual) or check.relation in self.allowed for check in checks]


@dataclass
class Creations:
    """The pending creations."""

    tuples: dict[TupleKey, datetime | None]
    asked: list[list[ObjectKey]] = field(default_factory=list)
    down: bool = False

    async def pending(self, objects: Sequence[ObjectKey]) -> Mapping[TupleKey, datetime | None]:
        self.asked.append(list(objects))
        if self.down:
            raise DatabaseUnavailable("down")
        return self.tuples


class Silent:
    """A cache observer."""

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        """Ignore the figures."""


def layers(server: Server, creations: Creations) -> CreationAwareRelationships:
    plain = FgaRelationships(cast(FgaClient, server))
    cached = CachedRelationships(plain, model_id=lambda: "m", entries=10, seconds=60, observer=Silent())
    return CreationAwareRelationships(cached, plain, creations)


async def ask(server: Server, creations: Creations, *questions: Question) -> list[bool]:
    return await layers(server, creations).check(ALICE, questions, now=NOON, pin=PIN)


async def test_a_refused_check_is_sent_again_with_the_tuples_of_the_creation() -> None:
    server, creations = Server({"can_read_data"}), Creations({OWNED: None})
    assert await ask(server, creations, READ, WRITE) == [True, True]
    assert server.calls == [[], [FgaTuple(f"user:{ALICE.id}", "ownership", f"table:{TABLE.id}")]]
    assert creations.asked == [[TABLE]]


async def test_an_allowed_check_reads_no_creations() -> None:
    server, creations = Server({"can_read_data"}), Creations({OWNED: None})
    assert await ask(server, creations, READ) == [True]
    assert creations.asked == []


async def test_an_answer_by_a_pending_creation_is_not_cached() -> None:
    server, creations = Server(), Creations({OWNED: None})
    asking = layers(server, creations)
    assert await asking.check(ALICE, [READ], now=NOON, pin=PIN) == [True]
    creations.tuples = {}
    assert await asking.check(ALICE, [READ], now=NOON, pin=PIN) == [False]


async def test_without_pending_creations_or_their_rows_the_refusal_stands() -> None:
    for creations in (Creations({}), Creations({OWNED: None}, down=True)):
        server = Server()
        assert await ask(server, creations, READ) == [False]
        assert len(server.calls) == 1


async def test_more_tuples_than_openfga_accepts_are_not_sent() -> None:
    many: dict[TupleKey, datetime | None] = {
        TupleKey(Principal(PrincipalType.USER, f"oidc~{n}"), "ownership", TABLE): None for n in range(101)
    }
    server = Server()
    assert await ask(server, Creations(many), READ) == [False]
    assert server.calls == [[], []]
    many.popitem()
    assert await ask(Server(), Creations(many), READ) == [True]


async def test_an_outage_of_the_second_check_is_not_a_refusal() -> None:
    with pytest.raises(DecisionEngineUnavailable):
        await ask(Server(down=True), Creations({OWNED: None}), READ)


async def test_absent_objects_are_looked_up_and_objects_outside_of_warehouses_are_not() -> None:
    creations = Creations({})
    absent = Question(Can.READ_DATA, ObjectKey(ObjectType.TABLE, str(uuid4())))
    role = Question(Can.ASSUME, ObjectKey(ObjectType.ROLE, str(uuid4())))
    assert await ask(Server(), creations, role) == [False]
    assert creations.asked == []
    assert await ask(Server(), creations, absent, role) == [False, False]
    assert creations.asked == [[absent.object]]


async def test_a_wrong_number_of_answers_is_returned_as_it_is() -> None:
    class Short:
        async def check(self, *_: object, **__: object) -> list[bool]:
            return []

    plain: Any = None
    asking = CreationAwareRelationships(Short(), plain, Creations({OWNED: None}))
    assert await asking.check(ALICE, [READ], now=NOON) == []
