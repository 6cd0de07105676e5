# SPDX-License-Identifier: Apache-2.0
"""The pace of large questions, so that small questions about others are answered as if nobody asked large ones.

Each user has an account of the time that large questions about the user take. While others ask, a user whose account
is used up gets `RATE` of each second. While nobody else asks, nothing is charged. A question is delayed by at most
`LONGEST_DELAY_SECONDS`, however many checks it has. What engines ask about their users is neither charged nor delayed.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from gateway.access.fair_slots import FairSlots
from gateway.access.token_buckets import TokenBuckets

__all__ = ["BATCH", "BURST_SECONDS", "LARGE", "LONGEST_DELAY_SECONDS", "RATE", "Pace", "Pacing"]

#: Questions of more checks are large. They are asked in batches of BATCH checks.
LARGE: Final = 50
BATCH: Final = 10

RATE: Final = 0.1
BURST_SECONDS: Final = 3.0
LONGEST_DELAY_SECONDS: Final = 15.0
#: Batches of large questions in flight, of the process and of one user.
_AT_ONCE, _EACH = 4, 1
#: For so long after a small question about somebody else, large ones are charged.
_CONTENDED_SECONDS: Final = 1.0


class Pacing:
    """Slots and accounts of one process for large questions."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._slots = FairSlots(_AT_ONCE, each=_EACH)
        self._accounts = TokenBuckets(RATE, BURST_SECONDS)
        # The last two users that small questions were about, with the time: one of them is somebody else.
        self._newest: tuple[str, float] = ("", -math.inf)
        self._before: tuple[str, float] = ("", -math.inf)

    def asked_small(self, user: str) -> None:
        """Note that a small question about the user is asked."""
        if self._newest[0] != user:
            self._before = self._newest
        self._newest = (user, self._clock())

    def of(self, user: str, *, longest: float = LONGEST_DELAY_SECONDS) -> Pace:
        """Return the pace of one large question about the user, which is delayed by at most `longest` seconds."""
        return Pace(self, user, longest)

    @asynccontextmanager
    async def turn(self, user: str) -> AsyncIterator[None]:
        """Hold one of the slots, which users get in turn, within the block."""
        async with self._slots.slot(user):
            yield

    def now(self) -> float:
        """Return the time of the clock, in seconds."""
        return self._clock()

    async def rest(self, user: str, took: float, *, longest: float) -> float:
        """Charge `took` seconds and wait until the account is balanced; return the seconds of waiting.

        A question that was delayed for long enough is neither charged nor delayed any more. Waiting happens outside of
        the slots, so it keeps no other user waiting.
        """
        if longest <= 0 or not self._is_contended(user):
            return 0.0
        _, owed = self._accounts.reserve(user, took, self._clock(), longest=math.inf)
        wait = min(owed, longest)
        if wait > 0:
            await self._sleep(wait)
        return wait

    def _is_contended(self, user: str) -> bool:
        newest = max(at for name, at in (self._newest, self._before) if name != user)
        return newest > self._clock() - _CONTENDED_SECONDS


class Pace:
    """The batches of one large question."""

    def __init__(self, pacing: Pacing, user: str, longest: float) -> None:
        self._pacing = pacing
        self._user = user
        self._left = longest

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[None]:
        """Wait for the user's turn, charge the time of the block, and wait until the account allows the next one."""
        async with self._pacing.turn(self._user):
            began = self._pacing.now()
            yield
            took = self._pacing.now() - began
        self._left -= await self._pacing.rest(self._user, took, longest=self._left)
