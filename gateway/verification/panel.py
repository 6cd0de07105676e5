# SPDX-License-Identifier: Apache-2.0
"""Query all verifiers that evaluate a change, and combine their verdicts: approval, rejection or pending.

The strictest verdict applies. A rejection is stricter than a missing verdict of a verifier that fails closed, which is
stricter than a pending verdict, which is stricter than an approval. Reasons are sorted by the names of the verifiers,
so the same verdicts give the same reasons.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import msgspec

from gateway.verification.port import Approved, ChangeKind, Pending, ProposedChange, Rejected, Verdict, Verifier

MOST_REASONS: Final = 20
LONGEST_REASON: Final = 500
"""Limits of the reasons of one verifier. The client receives them in an error message."""

_WAITING: Final = 8
"""For each question that a verifier may answer at the same time, so many others may wait. More fail at once."""

_CLOSE_SECONDS: Final = 5.0


class VerifierFailed(Exception):
    """A verifier gave no verdict. The message is for logs, and contains no part of the change and no secret."""


class VerifierOverloaded(VerifierFailed):
    """Too many queries wait for the verifier."""


class UnfitChange(VerifierFailed):
    """The verifier cannot evaluate this change, now or later. The change is rejected with this text as the reason."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one query to a verifier, for logs. `failure` contains no text of the client or of the verifier."""

    verifier: str
    outcome: str
    seconds: float
    failure: str | None = None


def ignore(_asked: Asked) -> None:
    """Record nothing."""


def no_configuration() -> str:
    """Return the empty configuration."""
    return ""


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """A verifier together with its limits.

    `timeout` is in seconds, and includes the time for which a query waits for others. A failure of the verifier is not
    approval: a caller can cause a timeout. `warehouses` are ids; empty means all. `questions` is the maximum number of
    concurrent queries to the verifier. A commit with only `unaffected` updates is not evaluated. `configuration`
    returns a text that changes when the verifier's rules do.
    """

    verifier: Verifier
    timeout: float
    warehouses: frozenset[str] = frozenset()
    questions: int = 16
    kinds: frozenset[ChangeKind] = frozenset()
    object_types: frozenset[str] = frozenset()
    unaffected: frozenset[str] = frozenset()
    configuration: Callable[[], str] = no_configuration
    check: Callable[[], Awaitable[None]] | None = None


class Judgement(msgspec.Struct, frozen=True):
    """The combined verdict. `unavailable` is True for a rejection whose reason is that a verifier gave no verdict."""

    verdict: Verdict
    unavailable: bool = False


class _NoVerdict(msgspec.Struct, frozen=True):
    """The result of a query that gave no verdict."""


class Panel:
    """All verifiers in the settings. `observe` is called after each query."""

    def __init__(self, seats: Iterable[Seat], *, observe: Callable[[Asked], None] = ignore) -> None:
        """Create a panel. Raises ValueError if two verifiers have the same name."""
        self._seats = tuple(sorted((_SeatState(seat, observe) for seat in seats), key=lambda state: state.name))
        names = self.names
        if len(set(names)) != len(names):
            raise ValueError(f"Several verifiers have the same name: {', '.join(names)}. Give each its own name.")

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all verifiers, sorted."""
        return tuple(state.name for state in self._seats)

    @property
    def version(self) -> str:
        """Return a digest of the verifiers and their configuration. If it changes, approvals are no longer valid."""
        described = [
            (
                state.name,
                # A constant in the place of a removed setting, so that approvals of earlier versions stay valid.
                False,
                sorted(state.seat.warehouses),
                sorted(state.seat.kinds),
                sorted(state.seat.object_types),
                state.seat.configuration(),
            )
            for state in self._seats
        ]
        return hashlib.sha256(msgspec.json.encode(described)).hexdigest()

    def concerns(self, kind: ChangeKind, object_type: str, updates: frozenset[str] = frozenset()) -> bool:
        """Return True if any verifier evaluates such changes. `updates` are the actions of a commit; if empty, any are
        assumed.
        """
        return any(state.concerns(kind, object_type, updates) for state in self._seats)

    async def verify_all(self, changes: Sequence[ProposedChange]) -> list[Judgement]:
        """Return the verdict on each change of one request. Stop after the first group that contains a rejection.

        As many changes are verified at a time as the verifier with the lowest limit of concurrent queries allows. So a
        request with many changes does not fail because of its own queries.
        """
        at_once = min((state.seat.questions for state in self._seats), default=1)
        judgements: list[Judgement] = []
        for start in range(0, len(changes), at_once):
            judgements += await asyncio.gather(*(self.verify(each) for each in changes[start : start + at_once]))
            if any(isinstance(each.verdict, Rejected) for each in judgements):
                break
        return judgements

    async def verify(self, change: ProposedChange) -> Judgement:
        """Query all verifiers concurrently and return the strictest verdict. Errors of verifiers are not raised."""
        asked = [state for state in self._seats if state.judges(change)]
        answers = await asyncio.gather(*(state.ask(change) for state in asked))
        rejected: list[str] = []
        pending: list[str] = []
        failed: list[str] = []
        for state, answer in zip(asked, answers, strict=True):
            match answer:
                case Rejected():
                    rejected += _reasons(state.name, answer.reasons, "rejected the change")
                case Pending():
                    pending += _reasons(state.name, answer.reasons, "waits for an approval")
                case _NoVerdict():
                    failed.append(f"{state.name}: gave no verdict; try again later")
        if rejected:
            return Judgement(Rejected(tuple(rejected)))
        if failed:
            return Judgement(Rejected(tuple(failed)), unavailable=True)
        return Judgement(Pending(tuple(pending)) if pending else Approved())

    async def check(self, name: str) -> None:
        """Raise an error if the verifier is not healthy. Raises VerifierFailed if its last query had no verdict."""
        for state in self._seats:
            if state.name != name:
                continue
            if state.seat.check is not None:
                await state.seat.check()
            if state.failure is not None:
                raise VerifierFailed(f"The verifier {name} gave no verdict: {state.failure}")

    async def close(self) -> None:
        """Close every verifier, each within five seconds. If one raises an error, the others are closed
        nevertheless.
        """
        await asyncio.gather(*(_closed(state.seat.verifier) for state in self._seats), return_exceptions=True)


class _SeatState:
    """A verifier with its limits and its running queries."""

    def __init__(self, seat: Seat, observe: Callable[[Asked], None]) -> None:
        self.seat = seat
        self.name = seat.verifier.name
        self.failure: str | None = None
        self._observe = observe
        self._free = asyncio.Semaphore(seat.questions)
        self._questions = 0

    def concerns(self, kind: ChangeKind, object_type: str, updates: frozenset[str] = frozenset()) -> bool:
        """Return True if the verifier evaluates such changes, or if its method `concerns` fails."""
        seat = self.seat
        if updates and kind is ChangeKind.COMMIT and updates <= seat.unaffected:
            return False
        if (seat.kinds and kind not in seat.kinds) or (seat.object_types and object_type not in seat.object_types):
            return False
        try:
            return bool(seat.verifier.concerns(kind, object_type))
        except Exception:  # a third party's code: its error must not skip the verifier
            return True

    def judges(self, change: ProposedChange) -> bool:
        """Return True if the verifier evaluates this change."""
        here = not self.seat.warehouses or change.warehouse_id in self.seat.warehouses
        updates = frozenset(str(update.get("action")) for update in change.updates)
        return here and self.concerns(change.kind, change.object_type, updates)

    async def ask(self, change: ProposedChange) -> Verdict | _NoVerdict:
        """Query the verifier and return its verdict. Return _NoVerdict if it failed, did not respond in time, or has
        too many queries.

        If the verifier cannot evaluate the change, the verdict is a rejection. That does not affect the health of the
        verifier.
        """
        began = time.monotonic()
        answer: Verdict | _NoVerdict
        failure: str | None = None
        try:
            answer = await self._ask(change)
            self.failure = None
        except UnfitChange as unfit:
            answer, failure = Rejected((str(unfit),)), str(unfit)
        except TimeoutError:
            answer = _NoVerdict()
            self.failure = failure = f"no answer within {self.seat.timeout:g} s"
        except Exception as error:  # any exception of a verifier is its failure
            answer = _NoVerdict()
            # Of other errors only the type: the text of a third party's error may contain a secret or the change.
            self.failure = failure = str(error) if isinstance(error, VerifierFailed) else type(error).__name__
        outcome = "failed" if isinstance(answer, _NoVerdict) else type(answer).__name__.lower()
        seconds = time.monotonic() - began
        self._observe(Asked(verifier=self.name, outcome=outcome, seconds=seconds, failure=failure))
        return answer

    async def _ask(self, change: ProposedChange) -> Verdict:
        if self._questions >= self.seat.questions * (1 + _WAITING):
            raise VerifierOverloaded("too many questions wait for an answer")
        waits = self._questions >= self.seat.questions
        self._questions += 1

        task = asyncio.create_task(self._question(change), name=f"verifier {self.name}")
        task.add_done_callback(self._answered)
        try:
            # Not `asyncio.timeout`: a verifier that ignores its cancellation would then delay the request without
            # limit.
            done, _ = await asyncio.wait({task}, timeout=self.seat.timeout)
        finally:
            task.cancel()
        if not done and waits:
            # The time of this query may have passed while it waited for queries of other callers.
            raise VerifierOverloaded(f"no answer within {self.seat.timeout:g} s, after waiting for other questions")
        if not done:
            raise TimeoutError
        if task.cancelled():
            raise VerifierFailed("the verifier cancelled its own question")
        return _understood(task.result())

    async def _question(self, change: ProposedChange) -> object:
        async with self._free:
            return await self.seat.verifier.verify(change)

    def _answered(self, task: asyncio.Task[object]) -> None:
        # Not counted down at the end of the request: a verifier that ignores its cancellation still works on the
        # question.
        self._questions -= 1
        if not task.cancelled():
            task.exception()


async def _closed(verifier: Verifier) -> None:
    async with asyncio.timeout(_CLOSE_SECONDS):
        await verifier.close()


def _understood(answer: object) -> Verdict:
    """Return the verdict if it has the right form. Otherwise raise VerifierFailed, so that a mistake of a third party
    never approves.
    """
    if isinstance(answer, Approved):
        return Approved()
    if isinstance(answer, Rejected | Pending):
        reasons: object = answer.reasons
        if isinstance(reasons, tuple | list) and all(isinstance(reason, str) for reason in reasons):
            return type(answer)(tuple(reasons))
    raise VerifierFailed("the verifier did not return a verdict")


def _reasons(name: str, reasons: tuple[str, ...], without: str) -> list[str]:
    """Return the reasons, each on one line after the verifier's name. Their number and length are limited."""
    shown = [_printable(reason) for reason in reasons[:MOST_REASONS]] or [without]
    if len(reasons) > MOST_REASONS:
        shown.append(f"{len(reasons) - MOST_REASONS} more reasons")
    return [f"{name}: {reason}" for reason in shown]


def _printable(reason: str) -> str:
    text = "".join(char if char.isprintable() else " " for char in reason[: LONGEST_REASON + 1])
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 1] + "…"
