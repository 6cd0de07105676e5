# SPDX-License-Identifier: Apache-2.0
"""Check that rows decide beside OpenFGA only while a revocation is pending, read before OpenFGA is queried."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.ports import Pin, Question
from gateway.fga.pending_checks import RevocationAwareRelationships

ALICE = Actor.user("oidc~alice")
NOW = datetime(2026, 3, 4, tzinfo=UTC)
QUESTIONS = [Question(relation, ObjectKey(ObjectType.TABLE, "t")) for relation in (Can.READ_DATA, Can.BE_SUBJECT)]


class Calls:
    """Answers for OpenFGA and the rows, and the order of their calls."""

    name = "rows"

    def __init__(self, *, pending: bool, openfga: bool = True, rows: bool = False) -> None:
        self.order: list[str] = []
        self._pending = pending
        self._answers = {"openfga": openfga, "rows": rows}

    async def pending(self, actor: Actor) -> bool:
        self.order.append("pending")
        return self._pending

    def of(self, name: str) -> One:
        return One(name, self._answers[name], self.order)


class One:
    """An authorizer with the same answer to all questions."""

    def __init__(self, name: str, answer: bool, order: list[str]) -> None:
        self.name = name
        self._answer = answer
        self._order = order

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        self._order.append(self.name)
        return [self._answer] * len(questions)

    async def ping(self) -> None: ...

    async def close(self) -> None: ...


async def ask(calls: Calls, *, pinned: bool | None, complete: bool = True) -> list[bool]:
    """Check the questions. `pinned` is the pin's `revocations_pending`; without it, there is no pin."""
    pin = None if pinned is None else Pin(uuid4(), uuid4(), None, revocations_pending=pinned)
    checks = RevocationAwareRelationships(calls.of("openfga"), calls.of("rows"), calls, complete=complete)
    return await checks.check(ALICE, QUESTIONS, now=NOW, pin=pin)


async def test_without_a_pending_revocation_only_openfga_is_asked() -> None:
    assert await ask(calls := Calls(pending=True), pinned=False) == [True, True]
    assert calls.order == ["openfga"]
    assert await ask(calls := Calls(pending=False), pinned=True) == [True, True]
    assert calls.order == ["pending", "openfga"]


@pytest.mark.parametrize("pinned", [True, None], ids=["seen with the revisions", "checks about other principals"])
async def test_rows_refuse_what_openfga_allows_while_a_revocation_is_pending(pinned: bool | None) -> None:
    answers = await ask(calls := Calls(pending=True), pinned=pinned)
    assert answers == [False, True], "a subject of a data policy stays restricted"
    assert calls.order == ["pending", "openfga", "rows"], "a delivery in between is part of OpenFGA's answer"


async def test_rows_allow_nothing_that_openfga_refuses() -> None:
    assert await ask(Calls(pending=True, openfga=False, rows=True), pinned=True) == [False, False]


async def test_a_right_that_no_row_has_is_undecided_if_openfga_may_have_such_rights() -> None:
    with pytest.raises(DecisionEngineUnavailable):
        await ask(Calls(pending=True), pinned=True, complete=False)
    assert await ask(Calls(pending=True, rows=True), pinned=True, complete=False) == [True, True]
