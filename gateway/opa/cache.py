# SPDX-License-Identifier: Apache-2.0
"""Cache answers of the policies until the time that the policies state in `valid_until`.

Questions of a caller about which no guardrail can speak are allowed without asking OPA (`silence`).

An answer without `valid_until` is not cached. The cache key is the whole input without the time and the request id. A
cached answer is used only while OPA has the same revision of policies and policy data. The revision is read twice a
second, so a cached answer is used for at most one second after a change. While the revision cannot be read, no cached
answer is used.
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

from gateway.access.decisions.policy import PolicyAnswer, PolicyAnswers, PolicyRequest
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.obligations.merging import NO_OBLIGATIONS
from gateway.opa.silence import AT_QUESTION, PartialEvaluation, SilentCallers

_log = structlog.get_logger("opa.remembered")

_encoder = msgspec.json.Encoder(order="deterministic")


_ALLOWED = PolicyAnswer(allow=True)


class EvaluatedPolicies(PartialEvaluation, Protocol):
    """The decider behind the cache: `OpaDecider`, or a table in tests."""

    async def evaluate(self, request: PolicyRequest) -> PolicyAnswers:
        """Return the answers and the time until which they are valid. Raises DecisionEngineUnavailable."""
        ...


class MemoryObserver(Protocol):
    """Receives cache hits and misses, for metrics."""

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        """Count the hits and misses of the cache named `cache`."""
        ...


@dataclass(frozen=True, slots=True)
class _Kept:
    answers: tuple[PolicyAnswer, ...]
    until: datetime
    revision: str


class CachedPolicies:
    """Implementation of `gateway.access.ports.Policies` with a cache. It caches only while the task `watch` runs.

    `entries` is the maximum number of cached requests. The revision is read every `poll_seconds`, and is valid for
    twice that time after it was read. `silent_callers` is the maximum number of callers that are remembered because no
    guardrail can speak about them; 0 asks OPA about every caller. A caller is evaluated at the question with the number
    `silent_at_question`.
    """

    def __init__(
        self,
        policies: EvaluatedPolicies,
        *,
        entries: int,
        observer: MemoryObserver,
        silent_callers: int = 0,
        silent_at_question: int = AT_QUESTION,
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
        self._silent = (
            SilentCallers(policies, self._known_revision, silent_callers, clock, silent_at_question)
            if silent_callers
            else None
        )

    async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        """Return one answer for each question. Raises the errors of the decider."""
        revision = self._known_revision()
        if revision is not None and self._silent is not None:
            silent = self._silent.has(request.actor)
            self._observer.count_lookups("silent_callers", hits=int(silent), misses=int(not silent))
            if silent:
                return (_ALLOWED,) * len(request.questions)
        # With an empty cache the computation of the key is saved.
        key = _key(request) if revision is not None and self._kept else None
        kept = None if key is None else self._kept.get(key)
        if kept is not None and kept.revision == revision and datetime.fromisoformat(request.context.time) < kept.until:
            self._observer.count_lookups("policies", hits=1, misses=0)
            return kept.answers
        self._observer.count_lookups("policies", hits=0, misses=1)
        answers = await self._policies.evaluate(request)
        # The answer contains its revision. Comparing it detects policies that change and change back between two reads.
        by_known = revision is not None and answers.revision == revision == self._known_revision()
        if answers.valid_until is not None and revision is not None and by_known:
            self._kept[key or _key(request)] = _Kept(answers.decisions, answers.valid_until, revision)
        if self._silent is not None and revision is not None and all(map(_is_plain, answers.decisions)):
            self._silent.heard_nothing(request.actor)
        return answers.decisions

    async def look(self) -> None:
        """Read the revision once, and clear the cache if it has changed. During an outage the revision is unknown."""
        requested_at = self._clock()
        try:
            revision = await self._policies.revision()
        except DecisionEngineUnavailable:
            revision = None
        if revision != self._revision:
            _log.info("policies.changed", known=revision is not None)
            self._kept.clear()
            if self._silent is not None:
                self._silent.clear()
        self._revision = revision
        self._seen_at = requested_at

    async def watch(self) -> None:
        """Read the revision every `poll_seconds`, until cancelled."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(self._poll_seconds)
        finally:
            if self._silent is not None:
                await self._silent.aclose()

    def _known_revision(self) -> str | None:
        return self._revision if self._clock() - self._seen_at < 2 * self._poll_seconds else None


def _is_plain(answer: PolicyAnswer) -> bool:
    """Return True for an allow without reasons and obligations."""
    return answer.allow and not answer.reasons and answer.obligations == NO_OBLIGATIONS


def _key(request: PolicyRequest) -> bytes:
    """Return a digest of the input without the time and the request id, which differ in each request."""
    context = msgspec.structs.replace(request.context, time="", request_id="")
    return hashlib.sha256(_encoder.encode(msgspec.structs.replace(request, context=context))).digest()
