# SPDX-License-Identifier: Apache-2.0
"""Ask OpenFGA whether given tuples alone give a relation, and whether further tuples would.

The tuples of a witness are sent as contextual tuples about objects and users with new ids. The store has no tuples
about those, so the answer depends on the witness alone.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Iterable, Sequence
from datetime import datetime
from typing import Final

from gateway.access.actor import Actor
from gateway.access.dependency_errors import first_of
from gateway.access.ports import Question
from gateway.fga.client import FgaClient
from gateway.fga.evaluation import HeldTuple
from gateway.fga.relationships import CURRENT_TIME, UNEXPIRED, FgaRelationships, rfc3339, subject_of
from gateway.fga.wire import Condition, FgaTuple

_Question = tuple[Iterable[HeldTuple], str, str]
"""(tuples, relation, object)."""

#: Checks in flight at the same time for one answer. Each has its own tuples, so it is a request of its own.
_AT_ONCE: Final = 2


class Confirmations:
    """Asks OpenFGA about tuples, with the model that checks use."""

    def __init__(self, client: FgaClient) -> None:
        self._client = client
        self._plain = FgaRelationships(client)

    async def alone(
        self,
        worlds: Sequence[Iterable[HeldTuple]],
        user: str,
        relation: str,
        object: str,
        now: datetime,
        *,
        asker: Actor,
        model_id: str | None = None,
    ) -> list[bool]:
        """Return, for each set of tuples in order, whether it alone gives `user` the relation on `object` at `now`.

        The checks use the share of `asker`, because their users have new ids. `model_id` is a model of the store, None
        for the one that checks use.
        Raises DecisionEngineUnavailable, and ValueError for a set with more than 100 tuples.
        """
        questions = [(world, relation, object) for world in worlds]
        return await self.each_alone(questions, user, now, asker=asker, model_id=model_id)

    async def each_alone(
        self,
        questions: Sequence[_Question],
        user: str,
        now: datetime,
        *,
        asker: Actor,
        model_id: str | None = None,
    ) -> list[bool]:
        """Return the result of `alone` for each (tuples, relation, object), in order."""
        slots, charged = asyncio.Semaphore(_AT_ONCE), subject_of(asker)[0]

        async def ask(question: _Question) -> bool:
            async with slots:
                return await self._alone(question, user, now, charged, model_id)

        return await _together(map(ask, questions))

    async def _alone(self, question: _Question, user: str, now: datetime, asker: str, model_id: str | None) -> bool:
        world, relation, object = question
        ids = _NewIds()
        contextual = [to_contextual(each, ids) for each in world]
        check = FgaTuple(ids.of(user), relation, ids.of(object))
        context = {CURRENT_TIME: rfc3339(now)}
        (held,) = await self._client.batch_check(
            [check], contextual=contextual, context=context, model_id=model_id, asker=asker
        )
        return held

    async def together_with(
        self, worlds: Sequence[Sequence[FgaTuple]], actor: Actor, question: Question, now: datetime
    ) -> list[bool]:
        """Return, for each set of further tuples in order, whether the actor would have the relation with them, in no
        cache.

        Raises DecisionEngineUnavailable.
        """
        return await _together(self._with(each, actor, question, now) for each in worlds)

    async def _with(self, further: Sequence[FgaTuple], actor: Actor, question: Question, now: datetime) -> bool:
        held, _ = await self._plain.check_with(actor, [question], (), now=now, paced=False, creations=further)
        return held[0] is True


async def _together(checks: Iterable[Coroutine[None, None, bool]]) -> list[bool]:
    """Return the results of the checks, in order."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in checks]
    except ExceptionGroup as failed:
        raise first_of(failed) from None
    return [task.result() for task in tasks]


class _NewIds:
    """Replaces each object by one of the same type with a new id. Wildcards and relations of subjects stay."""

    def __init__(self) -> None:
        self._new: dict[str, str] = {}

    def of(self, name: str) -> str:
        type, _, rest = name.partition(":")
        id, hash, relation = rest.partition("#")
        new = id if id == "*" else self._new.setdefault(f"{type}:{id}", str(uuid.uuid4()))
        return f"{type}:{new}{hash}{relation}"


def to_contextual(held: HeldTuple, ids: _NewIds | None = None) -> FgaTuple:
    """Return the tuple in the form of OpenFGA, with its expiry as a condition. With `ids`, its objects have new ids."""
    user, object = (held.user, held.object) if ids is None else (ids.of(held.user), ids.of(held.object))
    condition = None if held.until is None else Condition(UNEXPIRED, {"expires_at": rfc3339(held.until)})
    return FgaTuple(user, held.relation, object, condition)
