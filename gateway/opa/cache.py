# SPDX-License-Identifier: Apache-2.0
"""Cache results of the policies, and the callers that no guardrail can restrict ("silent" callers).

A guardrail is a Rego package that can deny or restrict an operation. Questions of a silent caller are allowed without a
request to OPA.

A result without `valid_until` is not cached. The cache key is the whole input without the time and the request id. A
cached result is used only while OPA has the same revision of policies and policy data. The revision is read twice a
second, so a cached result is used for at most one second after a change. While the revision cannot be read, no cached
result is used.

For a caller that sends repeated questions, OPA evaluates the guardrails partially once (`explanation.py`), in the
background. Until this proves that the caller is silent, its questions are sent as before. A proof is valid for exactly
this caller, with all of its roles, and for this revision of policies and policy data. It also expires after a time.

A proof contains the hash of the policy data, and with bundles also that of the rules, that OPA evaluated. Without
bundles, only the revisions that are read before and after it identify the rules. Behind a load balancer another server
may answer these reads, so such a proof is valid for a shorter time.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

import msgspec
import structlog
from cachetools import LRUCache

from gateway.access.decisions.policy import PolicyActor, PolicyAnswer, PolicyAnswers, PolicyRequest
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.obligations.merging import NO_OBLIGATIONS
from gateway.opa.explanation import Proof

_silence_log = structlog.get_logger("opa.silence")

#: The number of questions of a caller after which the caller is evaluated, and evaluated again when the proof has
#: ended. One evaluation costs OPA about as much as this number of questions.
AT_QUESTION: Final = 64

#: Seconds for which a proof is valid: if it contains the revision of OPA's rules, and if it does not (OPA without
#: bundles).
_PROVEN_S: Final = 600.0
_PROVEN_WITHOUT_RULES_S: Final = 60.0

#: After evaluations of this number of callers in succession without a proof, no other caller is evaluated under this
#: revision: some guardrail applies to all callers.
_MOST_IN_VAIN: Final = 16

#: The first and the longest pause in seconds after a failed evaluation.
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0


class PartialEvaluation(Protocol):
    """The decider that evaluates the guardrails for one caller: `OpaDecider`, or a table in tests."""

    async def revision(self) -> str | None:
        """Return the revision of policies and policy data; None if it is unknown. Raises DecisionEngineUnavailable."""
        ...

    async def silence(self, actor: PolicyActor) -> Proof | None:
        """Return the proof that no guardrail can restrict this caller, or None. Raises DecisionEngineUnavailable."""
        ...


@dataclass(slots=True)
class _Caller:
    questions: int = 0
    silent_until: float = float("-inf")
    settled: bool = False
    """True if the evaluation under this revision proved nothing."""


@dataclass(slots=True)
class SilentCallers:
    """The callers that no guardrail can restrict, for one revision of the policies at a time.

    `known_revision` returns the revision that OPA has according to a read within the last second, else None. `callers`
    is the maximum number of callers in memory. One evaluation runs at a time.
    """

    policies: PartialEvaluation
    known_revision: Callable[[], str | None]
    callers: int
    clock: Callable[[], float] = time.monotonic
    at_question: int = AT_QUESTION
    _seen: LRUCache[PolicyActor, _Caller] = field(init=False)
    _in_vain: int = field(init=False, default=0)
    _pause_s: float = field(init=False, default=0.0)
    _not_before: float = field(init=False, default=float("-inf"))
    _running: asyncio.Task[None] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Create the bounded map of callers."""
        self._seen = LRUCache(maxsize=self.callers)

    def has(self, actor: PolicyActor) -> bool:
        """Return True if no guardrail can restrict this caller.

        The code that calls this method must check the revision.
        """
        seen = self._seen.get(actor)
        return seen is not None and self.clock() < seen.silent_until

    def heard_nothing(self, actor: PolicyActor) -> None:
        """Count a result without reasons and obligations. After enough of them, start the evaluation of this caller."""
        seen = self._seen.get(actor)
        if seen is None:
            seen = self._seen[actor] = _Caller()
        seen.questions += 1
        if seen.questions < self.at_question or seen.settled or self._running is not None:
            return
        if self._in_vain >= _MOST_IN_VAIN or self.clock() < self._not_before:
            return
        # The task has an empty context, because the evaluation belongs to no request.
        self._running = asyncio.create_task(
            self._evaluate(actor, seen), name="opa-partial-evaluation", context=contextvars.Context()
        )

    def clear(self) -> None:
        """Remove all callers, because OPA has other policies or other policy data."""
        self._seen.clear()
        self._in_vain = 0

    async def aclose(self) -> None:
        """Cancel the running evaluation."""
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running

    async def _evaluate(self, actor: PolicyActor, seen: _Caller) -> None:
        """Evaluate the guardrails for one caller. Keep the result if it belongs to the known revision."""
        try:
            before = await self.policies.revision()
            began = self.clock()
            proof = await self.policies.silence(actor)
            after = await self.policies.revision()
            self._pause_s = 0.0
            # After `clear`, the caller has another entry, or none, and the proof is discarded.
            same = before == after == self.known_revision() and self._seen.get(actor) is seen
            if before is None or not same or (proof is not None and not proof.is_of(before)):
                self._not_before = self.clock() + _FIRST_PAUSE_S
            elif proof is None:
                seen.settled = True
                self._in_vain += 1
            else:
                seen.questions = 0
                seen.silent_until = began + (_PROVEN_S if proof.rules else _PROVEN_WITHOUT_RULES_S)
                self._in_vain = 0
        except DecisionEngineUnavailable as error:
            self._pause_s = min(max(2 * self._pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
            self._not_before = self.clock() + self._pause_s
            _silence_log.warning("policies.not_evaluated", reason=str(error), pause_seconds=self._pause_s)
        finally:
            self._running = None


_log = structlog.get_logger("opa.remembered")

_encoder = msgspec.json.Encoder(order="deterministic")


_ALLOWED = PolicyAnswer(allow=True)


class EvaluatedPolicies(PartialEvaluation, Protocol):
    """The decider behind the cache: `OpaDecider`, or a table in tests."""

    async def evaluate(self, request: PolicyRequest) -> PolicyAnswers:
        """Return the results and the time until which they are valid. Raises DecisionEngineUnavailable."""
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
    twice that time after it was read. `silent_callers` is the maximum number of callers in memory that no guardrail can
    restrict; with 0, every question is sent to OPA. A caller is evaluated when it has sent `silent_at_question`
    questions.
    """

    def __init__(
        self,
        policies: EvaluatedPolicies,
        *,
        entries: int = 10_000,
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
        """Return one result for each question. Raises the errors of the decider."""
        revision = self._known_revision()
        if revision is not None and self._silent is not None:
            silent = self._silent.has(request.actor)
            self._observer.count_lookups("silent_callers", hits=int(silent), misses=int(not silent))
            if silent:
                return (_ALLOWED,) * len(request.questions)
        # The key is not computed while the cache is empty.
        key = _key(request) if revision is not None and self._kept else None
        kept = None if key is None else self._kept.get(key)
        if kept is not None and kept.revision == revision and datetime.fromisoformat(request.context.time) < kept.until:
            self._observer.count_lookups("policies", hits=1, misses=0)
            return kept.answers
        self._observer.count_lookups("policies", hits=0, misses=1)
        answers = await self._policies.evaluate(request)
        # The result contains the revision of the policies that computed it. This comparison detects policies that
        # changed and changed back between two reads of the revision.
        by_known = revision is not None and answers.revision == revision == self._known_revision()
        if answers.valid_until is not None and revision is not None and by_known:
            self._kept[key or _key(request)] = _Kept(answers.decisions, answers.valid_until, revision)
        if self._silent is not None and revision is not None and all(map(_is_plain, answers.decisions)):
            self._silent.heard_nothing(request.actor)
        return answers.decisions

    async def look(self) -> None:
        """Read the revision once, and clear the cache if the revision has changed. During an outage it is unknown."""
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
    """Return a digest of the request without the time and the request id, which differ in each request."""
    context = msgspec.structs.replace(request.context, time="", request_id="")
    return hashlib.sha256(_encoder.encode(msgspec.structs.replace(request, context=context))).digest()
