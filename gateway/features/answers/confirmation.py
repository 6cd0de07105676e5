# SPDX-License-Identifier: Apache-2.0
"""Confirm an answer with OpenFGA before it is sent. An answer that OpenFGA does not confirm is an error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

import structlog

from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.management_errors import AnswerDisagreed, AnswerPending
from gateway.access.nouns.authz_errors import unavailable
from gateway.access.nouns.refs import ObjectKey
from gateway.access.tuples import Principal
from gateway.db.answers.path_grants import is_pending
from gateway.features.kit import UseCases
from gateway.fga.answer_checks import AnswerCheck
from gateway.fga.evaluation import UnknownRule

_log = structlog.get_logger("answers")

#: Pauses, in seconds, before an answer is computed again. A change between the read of the rows and the checks is no
#: disagreement.
_PAUSES: Final = (0.05, 0.5)

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """The checks behind an answer, and their expected results.

    `objects` are those on which tuples matter. A change of one of them that OpenFGA has not received explains a
    different result. `ask` returns the result of each check about a past moment; without it OpenFGA's tuples decide.
    """

    now: datetime
    checks: Sequence[AnswerCheck]
    expected: Sequence[bool]
    objects: Sequence[ObjectKey]
    ask: Callable[[], Awaitable[Sequence[bool]]] | None = None


@contextmanager
def deciding(*kept: type[DecisionEngineUnavailable]) -> Iterator[None]:
    """Context manager. Raises the refusal of an outage if the block cannot read or evaluate the model.

    The errors `kept` are raised unchanged.
    """
    try:
        yield
    except kept:
        raise
    except (DecisionEngineUnavailable, UnknownRule) as outage:
        raise unavailable(catalog_mutation=False) from outage


class Disagreement(Exception):
    """OpenFGA and the rows give different answers, perhaps because one was read before and the other after a change.

    A change of `principals` or `objects` that OpenFGA has not received explains it. `part` is the part of the answer.
    """

    def __init__(
        self, part: str, principals: Sequence[Principal], objects: Sequence[ObjectKey], differences: int = 1
    ) -> None:
        super().__init__("OpenFGA and the rows give different answers")
        self.part, self.principals, self.objects, self.differences = part, principals, objects, differences


class Confirming(UseCases):
    """Base class of use cases whose answers OpenFGA confirms."""

    async def _confirmed(self, compute: Callable[[], Awaitable[tuple[Answer, Unconfirmed]]]) -> Answer:
        """Return the answer that `compute` returns, once OpenFGA confirms it. Raises the errors of `_agreed`."""

        async def confirm() -> Answer:
            answer, unconfirmed = await compute()
            with deciding():
                if unconfirmed.ask is not None:
                    found = await unconfirmed.ask()
                else:
                    found = await self._answer_engines.checks.ask(unconfirmed.checks, now=unconfirmed.now)
            wrong = [
                check
                for check, yes, expected in zip(unconfirmed.checks, found, unconfirmed.expected, strict=True)
                if yes != expected
            ]
            if not wrong:
                return answer
            principals = list(dict.fromkeys(each.principal for each in wrong))
            raise Disagreement(wrong[0].relation, principals, unconfirmed.objects, len(wrong))

        return await self._agreed(confirm)

    async def _agreed(self, compute: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the answer of `compute`, which is called again if it raises Disagreement.

        Raises AnswerPending if OpenFGA has not received a change that concerns the answer, and AnswerDisagreed if
        nothing explains the difference.
        """
        for pause in (*_PAUSES, None):
            try:
                return await compute()
            except Disagreement as disagreement:
                found = disagreement
            async with self._database.read() as connection:
                pending = await is_pending(connection, found.principals, found.objects)
            if pause is not None:
                await asyncio.sleep(pause)
        if pending:
            raise AnswerPending(
                "A change of grants that concerns this answer has not reached OpenFGA yet. Send the request again."
            )
        self._answer_engines.checks.count_disagreement()
        _log.error(
            "answer.disagreed",
            part=found.part,
            on=f"{found.objects[0].type}:{found.objects[0].id}",
            principal=f"{found.principals[0].type}:{found.principals[0].id}",
            differences=found.differences,
        )
        raise AnswerDisagreed(
            "OpenFGA does not confirm this answer, so it was not sent. An administrator finds the difference with "
            "`lakegate reconcile`."
        )
