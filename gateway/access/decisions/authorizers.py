# SPDX-License-Identifier: Apache-2.0
"""Query additional authorizers, which can only refuse what OpenFGA allows.

The settings list them by name. A package can provide one as an entry point of the group `lakegate.authorizers`
(docs/extensions.md). If an authorizer fails, the request is refused with the same errors as in an outage of OpenFGA.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol, runtime_checkable

from gateway.access.actor import Actor
from gateway.access.dependency_errors import DatabaseUnavailable, DecisionEngineUnavailable, first_of
from gateway.access.nouns.relations import Can
from gateway.access.ports import Pin, Question, Relationships

ANSWER_SECONDS: Final = 5.0


@runtime_checkable
class Authorizer(Protocol):
    """Answers the same questions as OpenFGA (`gateway.access.ports.Relationships`), on every request.

    Its results are not cached, so a refusal takes effect with the next request. Its methods must not block the event
    loop.
    """

    @property
    def name(self) -> str:
        """Return the name that the setting AUTHORIZERS contains, and that health and errors show."""
        ...

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """Return one result for each question, in order. False refuses.

        `now` is the database's time, which decides about expiries. `pin` and `paced` are those of `Relationships`; most
        authorizers ignore them. Raises DecisionEngineUnavailable if a result is missing.
        """
        ...

    async def ping(self) -> None:
        """Raise an error if the authorizer cannot answer questions now."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class NarrowedRelationships:
    """Implements `Relationships`. Allows what both `relationships` and all `authorizers` allow.

    The authorizers run concurrently, and receive only the questions that `relationships` allows. `seconds` is their
    time limit.
    """

    def __init__(
        self, relationships: Relationships, authorizers: Sequence[Authorizer], *, seconds: float = ANSWER_SECONDS
    ) -> None:
        self._relationships = relationships
        self._authorizers = tuple(authorizers)
        self._seconds = seconds

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """Return one result for each question, in order.

        Raises DecisionEngineUnavailable if a result of any authorizer is missing, late or neither True nor False.
        """
        answers = await self._relationships.check(actor, questions, now=now, pin=pin, paced=paced)
        return await self.narrow(actor, questions, answers, now=now)

    async def narrow(
        self, actor: Actor, questions: Sequence[Question], answers: list[bool], *, now: datetime
    ) -> list[bool]:
        """Return `answers`, the results of `relationships`, with False for each question that an authorizer refuses.

        Raises the errors of `check`.
        """
        if len(answers) != len(questions):
            # The caller rejects a wrong number of results.
            return answers
        # A yes to `can_be_subject` restricts the caller. Authorizers cannot refuse it, because the refusal would allow
        # more.
        positions = [
            position
            for position, (question, answer) in enumerate(zip(questions, answers, strict=True))
            if answer is True and question.relation is not Can.BE_SUBJECT
        ]
        if not positions:
            return answers
        asked = [questions[position] for position in positions]
        try:
            async with asyncio.TaskGroup() as together:
                tasks = [together.create_task(self._answers(each, actor, asked, now)) for each in self._authorizers]
        except ExceptionGroup as failed:
            raise first_of(failed) from None
        asked_alone = [each.relation is Can.BE_SUBJECT for each in questions]
        narrowed = [answer is True and alone for answer, alone in zip(answers, asked_alone, strict=True)]
        for number, position in enumerate(positions):
            narrowed[position] = all(task.result()[number] for task in tasks)
        return narrowed

    async def _answers(
        self, authorizer: Authorizer, actor: Actor, questions: Sequence[Question], now: datetime
    ) -> list[bool]:
        try:
            async with asyncio.timeout(self._seconds):
                answers = await authorizer.check(actor, questions, now=now)
        except (DecisionEngineUnavailable, DatabaseUnavailable):
            raise
        except Exception as error:  # an extension can raise any error, which must deny and name the extension
            raise DecisionEngineUnavailable(
                f"The authorizer {authorizer.name!r} did not answer ({type(error).__name__})."
            ) from error
        if len(answers) != len(questions) or any(answer is not True and answer is not False for answer in answers):
            raise DecisionEngineUnavailable(
                f"The authorizer {authorizer.name!r} returned {len(answers)} answers to {len(questions)} questions, or "
                "one that is neither True nor False."
            )
        return answers
