# SPDX-License-Identifier: Apache-2.0
"""Conformance kit for additional authorizers: checks of the rules that every authorizer must keep.

An authorizer (`gateway.access.decisions.authorizers.Authorizer`) decides by rules of its own, so its author also lists
results that it must give (`Expected`). The kit only queries the authorizer and changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from uuid import UUID, uuid4

import msgspec

from gateway.access.actor import Actor, ActorKind
from gateway.access.decisions.authorizers import Authorizer
from gateway.access.nouns.cards import ACTIONS
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.ports import Question
from lakegate.conformance.rules import Rule, opened, require, run_kit

_CONCURRENT: Final = 20


class Expected(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """A result that the authorizer must give.

    `user` is `<provider>~<subject>`. With `role`, the id of a role, the user acts as this role alone. `object` is
    `<type>:<id>`, such as `table:0198…`, and `relation` an action of the relationship model, such as `can_read_data`.
    """

    user: str
    relation: Can
    object: str
    allowed: bool
    role: UUID | None = None

    @property
    def actor(self) -> Actor:
        """Return the caller."""
        return Actor(kind=ActorKind.USER, id=self.user, assumed_role=self.role)

    @property
    def question(self) -> Question:
        """Return the question about the relation of the user to the object. Raises ValueError if the object has an
        unknown type.
        """
        type, _, id = self.object.partition(":")
        return Question(self.relation, ObjectKey(ObjectType(type), id))


@dataclass(frozen=True, slots=True)
class AuthorizerSubject:
    """An authorizer to be checked. `open` opens a new instance at each call. `name` is the name of its entry point."""

    name: str
    open: Callable[[], Authorizer]
    expected: Sequence[Expected]
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def by_actor(self) -> dict[Actor, list[Expected]]:
        """Return the expected results, grouped by caller."""
        found: dict[Actor, list[Expected]] = {}
        for each in self.expected:
            found.setdefault(each.actor, []).append(each)
        return found


async def check_authorizer(subject: AuthorizerSubject, *, passed: Callable[[str], None] = lambda _: None) -> None:
    """Check all rules of authorizers. `passed` is called with the name of each rule that holds.

    Raises ConformanceError with the first broken rule.
    """
    await run_kit(AUTHORIZER_RULES, subject, passed=passed)


async def _has_its_name(subject: AuthorizerSubject) -> None:
    async with opened(subject.open) as authorizer:
        require(isinstance(authorizer, Authorizer), "the opened object lacks methods of the protocol Authorizer")
        require(authorizer.name == subject.name, f"its name is {authorizer.name!r} and must be {subject.name!r}")


async def _answers_a_ping(subject: AuthorizerSubject) -> None:
    async with opened(subject.open) as authorizer:
        await authorizer.ping()


async def _gives_the_expected_answers(subject: AuthorizerSubject) -> None:
    verdicts = {each.allowed for each in subject.expected}
    require(verdicts == {True, False}, "the expected answers must contain an allowed and a refused question")
    async with opened(subject.open) as authorizer:
        for each in subject.expected:
            answers = await authorizer.check(each.actor, [each.question], now=subject.now)
            require(len(answers) == 1, f"one question has {len(answers)} answers")
            text = f"{each.relation.value} on {each.object} for {each.user}"
            require(answers[0] is True or answers[0] is False, f"the answer to {text} is neither True nor False")
            require(answers[0] is each.allowed, f"{text} is {'allowed' if answers[0] else 'refused'}")


async def _answers_in_order(subject: AuthorizerSubject) -> None:
    async with opened(subject.open) as authorizer:
        for actor, expected in subject.by_actor().items():
            several = [*expected, *reversed(expected), *expected]
            answers = await authorizer.check(actor, [each.question for each in several], now=subject.now)
            require(answers == [each.allowed for each in several], "several questions have other answers than each one")
        actor = subject.expected[0].actor
        require(await authorizer.check(actor, [], now=subject.now) == [], "no questions have answers")


async def _separates_concurrent_calls(subject: AuthorizerSubject) -> None:
    calls = [*subject.by_actor().items()] * _CONCURRENT
    async with opened(subject.open) as authorizer:
        found = await asyncio.gather(
            *(authorizer.check(actor, [each.question for each in some], now=subject.now) for actor, some in calls)
        )
    expected = [[each.allowed for each in some] for _, some in calls]
    require(found == expected, "concurrent calls mix the answers of their callers")


async def _knows_all_questions(subject: AuthorizerSubject) -> None:
    # The door asks about an action only on the types of objects that have it in the relationship model.
    absent = {type: ObjectKey(type, str(uuid4())) for type in ACTIONS}
    questions = [Question(can, absent[type]) for type, actions in ACTIONS.items() for can in sorted(actions)]
    inside = ObjectKey(ObjectType.NAMESPACE, str(uuid4()))
    questions.append(Question(Can.READ_DATA, ObjectKey(ObjectType.TABLE, str(uuid4())), above=(inside,)))
    async with opened(subject.open) as authorizer:
        for actor in (Actor.user("kit~nobody"), Actor(kind=ActorKind.USER, id="kit~nobody", assumed_role=uuid4())):
            answers = await authorizer.check(actor, questions, now=subject.now)
            require(len(answers) == len(questions), f"{len(questions)} questions have {len(answers)} answers")
            require(all(each is True or each is False for each in answers), "an answer is neither True nor False")


AUTHORIZER_RULES: Final = (
    Rule("the name is that of the entry point", _has_its_name),
    Rule("a ping succeeds", _answers_a_ping),
    Rule("the expected answers are given", _gives_the_expected_answers),
    Rule("each question has its answer, in order", _answers_in_order),
    Rule("concurrent calls do not mix", _separates_concurrent_calls),
    Rule("questions about unknown users and objects are answered", _knows_all_questions),
)
"""The rules of authorizers, in the order of their checks."""
