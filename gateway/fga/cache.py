# SPDX-License-Identifier: Apache-2.0
"""OpenFGA's allows, remembered for as long as nothing can have taken them away.

An entry is found only under the revisions that were read *before* OpenFGA was asked. Whatever removes an allow moves a
revision before it is acknowledged, so a request that begins afterwards looks elsewhere. A refusal is never remembered:
what is granted counts from the next request on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from cachetools import LRUCache

from gateway.access.actor import Actor
from gateway.access.ports import Pin, Question, Relationships
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.relations import Can

# What lies in no warehouse: all that can take an allow on it away moves the server's revision.
_OUTSIDE = frozenset({ObjectType.SERVER, ObjectType.PROJECT, ObjectType.ROLE, ObjectType.USER})


@dataclass(frozen=True, slots=True)
class _Circle:
    """All that a request's questions share: two requests may use each other's answers only when all of it is equal."""

    revision: UUID
    time_boxes: UUID
    model_id: str
    kind: str
    actor_id: str
    assumed_role: UUID | None
    groups: str


_Key = tuple[_Circle, UUID | None, Can, ObjectKey]


@dataclass(frozen=True, slots=True)
class _Allow:
    """`until` is the database's time at which a grant behind it may end; `forgotten_at` is this process's own clock."""

    until: datetime | None
    forgotten_at: float


class MemoryObserver(Protocol):
    """Is told how often memory helps, for metrics."""

    def remembered(self, memory: str, *, hits: int, misses: int) -> None:
        """So many questions were answered by this memory, and so many were not."""
        ...


class RememberedRelationships:
    """Implements `gateway.access.ports.Relationships` before another one, which is asked what is not known.

    `model_id` tells the model that questions are asked by at this moment. `entries` bounds the memory (about half a
    kilobyte each); an entry is used for at most `seconds`, which bounds what a change behind the gateway's back can do
    should nobody notice it.
    """

    def __init__(
        self,
        relationships: Relationships,
        *,
        model_id: Callable[[], str],
        entries: int,
        seconds: float,
        observer: MemoryObserver,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._relationships = relationships
        self._model_id = model_id
        self._seconds = seconds
        self._observer = observer
        self._clock = clock
        self._allows: LRUCache[_Key, _Allow] = LRUCache(maxsize=max(entries, 1))

    async def check(
        self, actor: Actor, questions: Sequence[Question], *, now: datetime, pin: Pin | None = None, paced: bool = True
    ) -> list[bool]:
        """One answer per question, in order. Raises what asking raises."""
        if pin is None or self._seconds <= 0:
            return await self._relationships.check(actor, questions, now=now, paced=paced)
        circle = _Circle(
            pin.revision,
            pin.time_boxes,
            self._model_id(),
            actor.kind.value,
            actor.id,
            actor.assumed_role,
            actor.groups_digest,
        )
        known = {question for question in questions if self._knows(circle, question, now)}
        unknown = [question for question in questions if question not in known]
        self._observer.remembered("relationships", hits=len(known), misses=len(unknown))
        if not unknown:
            return [True] * len(questions)
        answers = await self._relationships.check(actor, unknown, now=now, paced=paced)
        if len(answers) != len(unknown):
            # Another number of answers than questions is the caller's to refuse; nothing of it is remembered.
            return answers
        allowed = {question for question, answer in zip(unknown, answers, strict=True) if answer is True}
        allow = _Allow(pin.next_expiry, self._clock() + self._seconds)
        if circle.model_id == self._model_id():
            for question in allowed:
                if _may_be_remembered(question):
                    self._allows[circle, question.within, question.relation, question.object] = allow
        return [question in known or question in allowed for question in questions]

    def _knows(self, circle: _Circle, question: Question, now: datetime) -> bool:
        if not _may_be_remembered(question):
            return False
        allow = self._allows.get((circle, question.within, question.relation, question.object))
        if allow is None:
            return False
        return self._clock() < allow.forgotten_at and (allow.until is None or now < allow.until)


def _may_be_remembered(question: Question) -> bool:
    return question.within is not None or question.object.type in _OUTSIDE
