# SPDX-License-Identifier: Apache-2.0
"""Cache allowed OpenFGA checks for as long as no change can have revoked them.

The cache key contains revisions: random values of the server and of warehouses that change whenever a right may have
ended. They were read *before* the check was sent. Every change that can revoke an allow changes a revision before it is
acknowledged. So a request that begins afterwards uses another key. A denied check is never cached: a new grant is
effective from the next request on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol
from uuid import UUID

from cachetools import LRUCache

from gateway.access.actor import Actor
from gateway.access.nouns.cards import OUTSIDE
from gateway.access.nouns.refs import ObjectKey
from gateway.access.nouns.relations import Can
from gateway.access.ports import Pin, Question, Relationships


@dataclass(frozen=True, slots=True)
class _KeyScope:
    """The part of the cache key that all questions of a request share.

    Two requests share results only if it is equal.
    """

    revision: UUID
    time_boxes: UUID
    model_id: str
    kind: str
    actor_id: str
    assumed_role: UUID | None
    groups: str


_Key = tuple[_KeyScope, UUID | None, Can, ObjectKey]


@dataclass(frozen=True, slots=True)
class _Allow:
    """A cached allow.

    `until` is the database's time at which the first grant to the caller or to one of its roles expires. `forgotten_at`
    is the time at which the entry becomes invalid, by the clock of this process.
    """

    until: datetime | None
    forgotten_at: float


class MemoryObserver(Protocol):
    """Receives cache hits and misses, for metrics."""

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        """Count the hits and misses of the cache named `cache`."""
        ...


class CachedRelationships:
    """Implements `gateway.access.ports.Relationships`. Caches the allows of another implementation.

    `model_id` returns the id of the model that checks use now. `entries` is the maximum number of entries, of about 0.5
    kilobytes each. An entry is valid for at most `seconds`: this bounds the effect of tuples that were changed in
    OpenFGA directly, if drift detection misses them. With 0 seconds nothing is cached.
    """

    def __init__(
        self,
        relationships: Relationships,
        *,
        model_id: Callable[[], str],
        entries: int = 20_000,
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
        """Return one result for each question, in order. Raises the errors of the cached implementation."""
        if pin is None or self._seconds <= 0:
            return await self._relationships.check(actor, questions, now=now, paced=paced)
        key_scope = _KeyScope(
            pin.revision,
            pin.time_boxes,
            self._model_id(),
            actor.kind.value,
            actor.id,
            actor.assumed_role,
            actor.groups_digest,
        )
        known = {question for question in questions if self._knows(key_scope, question, now)}
        seen = {question.object for question in known}
        unknown = [replace(question, seen=question.object in seen) for question in questions if question not in known]
        self._observer.count_lookups("relationships", hits=len(known), misses=len(unknown))
        if not unknown:
            return [True] * len(questions)
        answers = await self._relationships.check(actor, unknown, now=now, pin=pin, paced=paced)
        if len(answers) != len(unknown):
            # The caller rejects a wrong number of results. None of them is cached.
            return answers
        allowed = {question for question, answer in zip(unknown, answers, strict=True) if answer is True}
        allow = _Allow(pin.next_expiry, self._clock() + self._seconds)
        if key_scope.model_id == self._model_id():
            for question in allowed:
                if _is_cacheable(question):
                    self._allows[key_scope, question.within, question.relation, question.object] = allow
        return [question in known or question in allowed for question in questions]

    def _knows(self, key_scope: _KeyScope, question: Question, now: datetime) -> bool:
        if not _is_cacheable(question):
            return False
        allow = self._allows.get((key_scope, question.within, question.relation, question.object))
        if allow is None:
            return False
        return self._clock() < allow.forgotten_at and (allow.until is None or now < allow.until)


def _is_cacheable(question: Question) -> bool:
    # Every change that can revoke an allow on an object outside of warehouses changes the revision of the server.
    return question.within is not None or question.object.type in OUTSIDE
