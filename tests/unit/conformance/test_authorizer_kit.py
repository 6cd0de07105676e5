# SPDX-License-Identifier: Apache-2.0
"""The kit for authorizers, and how the door asks them: each rule detects its violation, and every failure denies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from gateway.access.actor import Actor
from gateway.access.decisions.authorizers import NarrowedRelationships
from gateway.access.dependency_errors import DatabaseUnavailable, DecisionEngineUnavailable
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.ports import Question
from lakegate.conformance.authorizers import AUTHORIZER_RULES, AuthorizerSubject, Expected, check_authorizer
from lakegate.conformance.rules import ConformanceError
from tests.extensions.installing import install
from tests.support.kits import conformance

NOW = datetime(2026, 3, 4, tzinfo=UTC)
TABLES = [ObjectKey(ObjectType.TABLE, str(uuid4())) for _ in range(4)]
ANN = "oidc~ann"
EXPECTED = [
    Expected(user=user, relation=Can.READ_DATA, object=f"table:{key.id}", allowed=(user == ANN) == (key in TABLES[:2]))
    for user in (ANN, "oidc~ben")
    for key in TABLES
]


class Rules:
    """A correct authorizer: ann reads the first two tables, and all others read the rest."""

    name = "rules"

    async def check(self, actor: Actor, questions: Sequence[Question], **_: Any) -> Any:
        await asyncio.sleep(0)
        return [(actor.id == ANN) == (each.object in TABLES[:2]) for each in questions]

    async def ping(self) -> None:
        """Succeed."""

    async def close(self) -> None:
        """Do nothing."""


class OtherName(Rules):
    name = "other"


class NoPing(Rules):
    async def ping(self) -> None:
        raise RuntimeError("not connected")


class AllowsAll(Rules):
    async def check(self, actor: Actor, questions: Sequence[Question], **_: Any) -> Any:
        return [True] * len(questions)


class Truthy(Rules):
    async def check(self, actor: Actor, questions: Sequence[Question], **_: Any) -> Any:
        return [int(answer) for answer in await super().check(actor, questions)]


class Sorted(Rules):
    async def check(self, actor: Actor, questions: Sequence[Question], **_: Any) -> Any:
        return sorted(await super().check(actor, questions))


class AnswersForTheLast(Rules):
    _actor: Actor

    async def check(self, actor: Actor, questions: Sequence[Question], **_: Any) -> Any:
        AnswersForTheLast._actor = actor
        await asyncio.sleep(0)
        return await super().check(self._actor, questions)


class TablesOnly(Rules):
    async def check(self, actor: Actor, questions: Sequence[Question], **_: Any) -> Any:
        return await super().check(actor, [each for each in questions if each.object.type is ObjectType.TABLE])


BROKEN: list[tuple[type[Rules], str]] = [
    (OtherName, "the name is that of the entry point"),
    (NoPing, "a ping succeeds"),
    (AllowsAll, "the expected answers are given"),
    (Truthy, "the expected answers are given"),
    (Sorted, "each question has its answer, in order"),
    (AnswersForTheLast, "concurrent calls do not mix"),
    (TablesOnly, "questions about unknown users and objects are answered"),
]


async def test_a_correct_authorizer_keeps_all_rules() -> None:
    passed = list[str]()
    await check_authorizer(AuthorizerSubject("rules", Rules, EXPECTED), passed=passed.append)
    assert passed == [rule.name for rule in AUTHORIZER_RULES] == list(dict.fromkeys(rule for _, rule in BROKEN))


@pytest.mark.parametrize(("kind", "rule"), BROKEN)
async def test_each_rule_detects_an_authorizer_that_breaks_it(kind: type[Rules], rule: str) -> None:
    with pytest.raises(ConformanceError) as error:
        await check_authorizer(AuthorizerSubject("rules", kind, EXPECTED))
    assert error.value.rule == rule


async def test_expected_answers_without_a_refusal_prove_nothing() -> None:
    with pytest.raises(ConformanceError, match="an allowed and a refused question"):
        await check_authorizer(AuthorizerSubject("rules", Rules, [each for each in EXPECTED if each.allowed]))


def test_the_command_checks_an_installed_authorizer(tmp_path: Path) -> None:
    site, frozen, expected = tmp_path / "site", tmp_path / "frozen", tmp_path / "expected.json"
    site.mkdir()
    frozen.mkdir()
    install(site, "folders")
    (frozen / f"table:{TABLES[0].id}").touch()
    answers = [
        {"user": ANN, "relation": "can_drop", "object": f"table:{key.id}", "allowed": key is not TABLES[0]}
        for key in TABLES
    ]
    expected.write_text(json.dumps(answers))
    arguments = ("authorizers", "freeze", "--expected", str(expected))
    done = conformance(site, *arguments, LAKEGATE_FOLDERS_FROZEN=str(frozen))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"holds   {rule.name}" for rule in AUTHORIZER_RULES]
    expected.write_text("[1]")
    done = conformance(site, *arguments, LAKEGATE_FOLDERS_FROZEN=str(frozen))
    assert done.returncode == 1 and "has no expected answers" in done.stderr


# -- the door --------------------------------------------------------------------------------------------------------

QUESTIONS = [Question(Can.READ_DATA, key) for key in TABLES]


class Fixed(Rules):
    """An authorizer with fixed answers by table. It records the questions."""

    def __init__(self, *allowed: ObjectKey) -> None:
        self.allowed = allowed
        self.asked: list[ObjectKey] = []

    async def check(self, actor: Actor, questions: Sequence[Question], **_: Any) -> Any:
        self.asked += [each.object for each in questions]
        return [each.object in self.allowed for each in questions]


async def answers(openfga: Fixed, *others: Rules, seconds: float = 5.0) -> list[bool]:
    narrowed = NarrowedRelationships(openfga, others, seconds=seconds)
    return await narrowed.check(Actor.user(ANN), QUESTIONS, now=NOW)


async def test_only_what_openfga_and_all_authorizers_allow_is_allowed() -> None:
    openfga, one, two = Fixed(*TABLES[:3]), Fixed(*TABLES[1:]), Fixed(*TABLES)
    assert await answers(openfga, one, two) == [False, True, True, False]
    assert one.asked == two.asked == TABLES[:3], "an authorizer is asked about what OpenFGA refused"


async def test_an_authorizer_is_not_asked_if_openfga_allows_nothing() -> None:
    one = Fixed(*TABLES)
    assert await answers(Fixed(), one) == [False] * 4
    assert one.asked == []


class Raises(Rules):
    async def check(self, actor: Actor, questions: Sequence[Question], **_: Any) -> Any:
        raise KeyError("a bug")


class NoDatabase(Rules):
    async def check(self, actor: Actor, questions: Sequence[Question], **_: Any) -> Any:
        raise DatabaseUnavailable("down")


class Hangs(Rules):
    async def check(self, actor: Actor, questions: Sequence[Question], **_: Any) -> Any:
        await asyncio.Event().wait()


class TooFew(Rules):
    async def check(self, actor: Actor, questions: Sequence[Question], **_: Any) -> Any:
        return [True] * (len(questions) - 1)


class Strings(Rules):
    async def check(self, actor: Actor, questions: Sequence[Question], **_: Any) -> Any:
        return ["no"] * len(questions)


@pytest.mark.parametrize("kind", [Raises, Hangs, TooFew, Strings])
async def test_a_failing_authorizer_denies_and_is_named(kind: Callable[[], Rules]) -> None:
    with pytest.raises(DecisionEngineUnavailable, match="authorizer 'rules'"):
        await answers(Fixed(*TABLES), Fixed(*TABLES), kind(), seconds=0.05)


async def test_an_outage_of_the_database_keeps_its_class() -> None:
    with pytest.raises(DatabaseUnavailable):
        await answers(Fixed(*TABLES), NoDatabase())
