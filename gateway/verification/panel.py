# SPDX-License-Identifier: Apache-2.0
"""Ask all verifiers that a change concerns and join their verdicts."""

import asyncio
import hashlib

import msgspec

from gateway.verification.port import Approved, ChangeKind, Pending, ProposedChange, Rejected, Verdict, Verifier


class Seat(msgspec.Struct, frozen=True):
    """Hold a verifier with its limits."""

    verifier: Verifier
    timeout: float
    fail_open: bool = False


class Judgement(msgspec.Struct, frozen=True):
    """State the joint verdict; `unavailable` marks a refusal because a verifier failed."""

    verdict: Verdict
    unavailable: bool = False


class Panel:
    """Ask verifiers concurrently."""

    def __init__(self, seats: tuple[Seat, ...]) -> None:
        self._seats = seats

    @property
    def version(self) -> str:
        """Return a digest over the configuration of the verifiers: an approval ends when it changes."""
        seats = [[seat.verifier.name, seat.timeout, seat.fail_open] for seat in self._seats]
        return hashlib.sha256(msgspec.json.encode(seats)).hexdigest()

    def concerns(self, kind: ChangeKind, object_type: str) -> bool:
        """Tell whether any verifier judges such a change."""
        return any(seat.verifier.concerns(kind, object_type) for seat in self._seats)

    async def verify(self, change: ProposedChange) -> Judgement:
        """Return the strictest verdict."""
        asked = [seat for seat in self._seats if seat.verifier.concerns(change.kind, change.object_type)]
        answers = await asyncio.gather(*(_ask(seat, change) for seat in asked))
        rejected: list[str] = []
        pending: list[str] = []
        failed: list[str] = []
        for seat, answer in zip(asked, answers, strict=True):
            name = seat.verifier.name
            if isinstance(answer, Rejected):
                rejected += [f"{name}: {reason}" for reason in answer.reasons or ("rejected",)]
            elif isinstance(answer, Pending):
                pending += [f"{name}: {reason}" for reason in answer.reasons or ("pending",)]
            elif not isinstance(answer, Approved) and not seat.fail_open:
                failed.append(f"{name}: gave no verdict; try again later")
        if rejected:
            return Judgement(Rejected(tuple(rejected)))
        if failed:
            return Judgement(Rejected(tuple(failed)), unavailable=True)
        return Judgement(Pending(tuple(pending)) if pending else Approved())

    async def close(self) -> None:
        """Close every verifier."""
        await asyncio.gather(*(seat.verifier.close() for seat in self._seats), return_exceptions=True)


async def _ask(seat: Seat, change: ProposedChange) -> Verdict | None:
    try:
        async with asyncio.timeout(seat.timeout):
            return await seat.verifier.verify(change)
    # Any exception of a verifier counts as its failure.
    except Exception:
        return None
