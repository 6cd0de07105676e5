# SPDX-License-Identifier: Apache-2.0
"""Remember the callers about which no guardrail can speak, so that OPA is asked only what it could answer otherwise.

A caller that returns is evaluated partially once (`residual`), in the background. While that runs, and unless it proves
silence, its questions are sent as before. A proof is valid for exactly this caller, with all of its roles, and for this
revision of policies and policy data. It ends with the revision, and after a time in any case.

A proof names the policy data, and with bundles the rules, that OPA evaluated. Without bundles, only the reads of the
revision before and after it name the rules. Behind a load balancer these reads may reach another server, so that such a
proof is valid for a shorter time.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import structlog
from cachetools import LRUCache

from gateway.access.decisions.policy import PolicyActor
from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.opa.residual import Proof

_log = structlog.get_logger("opa.silence")

#: The number of a caller's questions at which it is evaluated, and again after a proof has ended. One evaluation costs
#: OPA about as much as this number of questions.
AT_QUESTION: Final = 64

#: The time in seconds for which a proof is valid, with the revision of the rules and without it.
_PROVEN_S: Final = 600.0
_PROVEN_WITHOUT_RULES_S: Final = 60.0

#: After this number of callers in succession without a proof, no other is evaluated under this revision: a guardrail
#: speaks about all of them.
_MOST_IN_VAIN: Final = 16

#: The first and the longest pause in seconds after a failed evaluation.
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0


class PartialEvaluation(Protocol):
    """The decider that evaluates the guardrails for one caller: `OpaDecider`, or a table in tests."""

    async def revision(self) -> str | None:
        """Return the revision of policies and policy data, None if it is unknown. Raises DecisionEngineUnavailable."""
        ...

    async def silence(self, actor: PolicyActor) -> Proof | None:
        """Return the proof that no guardrail can speak about a caller, or None. Raises DecisionEngineUnavailable."""
        ...


@dataclass(slots=True)
class _Caller:
    questions: int = 0
    silent_until: float = float("-inf")
    settled: bool = False
    """True if the evaluation under this revision proved nothing."""


@dataclass(slots=True)
class SilentCallers:
    """The callers that need no question, for one revision at a time. `clear` is called when the revision changes.

    `known_revision` returns the revision that OPA has according to a read within the last second, else None. `callers`
    is the maximum number of callers that are remembered. One evaluation runs at a time.
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
        """Return True if no guardrail can speak about this caller. The caller of this method checks the revision."""
        seen = self._seen.get(actor)
        return seen is not None and self.clock() < seen.silent_until

    def heard_nothing(self, actor: PolicyActor) -> None:
        """Count an answer without reasons and obligations, and start the evaluation of a caller that returns."""
        seen = self._seen.get(actor)
        if seen is None:
            seen = self._seen[actor] = _Caller()
        seen.questions += 1
        if seen.questions < self.at_question or seen.settled or self._running is not None:
            return
        if self._in_vain >= _MOST_IN_VAIN or self.clock() < self._not_before:
            return
        # Its own context: the evaluation belongs to no request.
        self._running = asyncio.create_task(
            self._evaluate(actor, seen), name="opa-partial-evaluation", context=contextvars.Context()
        )

    def clear(self) -> None:
        """Forget all callers: OPA has other policies or other policy data."""
        self._seen.clear()
        self._in_vain = 0

    async def aclose(self) -> None:
        """Cancel the running evaluation."""
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running

    async def _evaluate(self, actor: PolicyActor, seen: _Caller) -> None:
        """Evaluate the guardrails for one caller, and remember the result if it belongs to the known revision."""
        try:
            before = await self.policies.revision()
            began = self.clock()
            proof = await self.policies.silence(actor)
            after = await self.policies.revision()
            self._pause_s = 0.0
            # After `clear`, the caller has another entry, or none.
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
            _log.warning("policies.not_evaluated", reason=str(error), pause_seconds=self._pause_s)
        finally:
            self._running = None
