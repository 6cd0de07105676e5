# SPDX-License-Identifier: Apache-2.0
"""Cache answers of the policies for as long as the policies promise that they hold.

An answer without `valid_until` is not cached. One with it is cached under the whole input but for the time and the
request's id, and only while OPA is known to use the same policies and policy data. That revision is read twice a
second, so no answer is used that is older than a change by more than a second. If it cannot be read, no cached answer
is used.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import msgspec
import structlog
from cachetools import LRUCache

from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.access.policy import PolicyAnswer, PolicyAnswers, PolicyRequest

_log = structlog.get_logger("opa.remembered")

_encoder = msgspec.json.Encoder(order="deterministic")


class AskedPolicies(Protocol):
    """The decider behind the cache: `OpaDecider`, or a table in tests."""

    async def ask(self, request: PolicyRequest) -> PolicyAnswers:
        """The answers and how long they hold. Raises DecisionEngineUnavailable."""
        ...

    async def revision(self) -> str | None:
        """Which policies and data judge. Raises DecisionEngineUnavailable."""
        ...


class MemoryObserver(Protocol):
    """Receives hits and misses, for metrics."""

    def remembered(self, memory: str, *, hits: int, misses: int) -> None:
        """So many requests were answered by this memory, and so many were not."""
        ...


@dataclass(frozen=True, slots=True)
class _Kept:
    answers: tuple[PolicyAnswer, ...]
    until: datetime
    revision: str


class RememberedPolicies:
    """Implements `gateway.access.ports.Policies`. `watch` has to run for anything to be remembered.

    The revision is looked at every `poll_seconds`; one that was seen longer ago than twice that is not relied on.
    """

    def __init__(
        self,
        policies: AskedPolicies,
        *,
        entries: int,
        observer: MemoryObserver,
        poll_seconds: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._policies = policies
        self._observer = observer
        self._poll_seconds = poll_seconds
        self._clock = clock
        self._kept: LRUCache[bytes, _Kept] = LRUCache(maxsize=entries)
        self._revision: str | None = None
        self._seen_at = float("-inf")

    async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        """Return one answer for each question. Raises the errors of the decider."""
        revision = self._known_revision()
        # Policies that promise nothing leave nothing to look for.
        kept = self._kept.get(_key(request)) if revision is not None and self._kept else None
        if kept is not None and kept.revision == revision and datetime.fromisoformat(request.context.time) < kept.until:
            self._observer.remembered("policies", hits=1, misses=0)
            return kept.answers
        self._observer.remembered("policies", hits=0, misses=1)
        answers = await self._policies.ask(request)
        # By the answer's own word: policies that changed for less than the time between two looks are seen by none.
        by_known = revision is not None and answers.revision == revision == self._known_revision()
        if answers.valid_until is not None and revision is not None and by_known:
            self._kept[_key(request)] = _Kept(answers.decisions, answers.valid_until, revision)
        return answers.decisions

    async def look(self) -> None:
        """Read the revision once. An outage is no error here: the next question meets it."""
        asked_at = self._clock()
        try:
            revision = await self._policies.revision()
        except DecisionEngineUnavailable:
            revision = None
        if revision != self._revision:
            _log.info("policies.changed", known=revision is not None)
            self._kept.clear()
        self._revision = revision
        self._seen_at = asked_at

    async def watch(self) -> None:
        """Learn the revision again and again, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self._poll_seconds)

    def _known_revision(self) -> str | None:
        return self._revision if self._clock() - self._seen_at < 2 * self._poll_seconds else None


def _key(request: PolicyRequest) -> bytes:
    """Return the whole input but for the parts that differ in each request and determine no cached answer."""
    context = msgspec.structs.replace(request.context, time="", request_id="")
    return hashlib.sha256(_encoder.encode(msgspec.structs.replace(request, context=context))).digest()
