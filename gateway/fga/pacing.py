# SPDX-License-Identifier: Apache-2.0
"""Limit the rate of large questions, so that they do not slow down small questions about other users.

A question is large by the number of checks that it sends to OpenFGA (`LARGE`). Each user has a token bucket, charged
with the seconds that large questions about the user take. It holds at most `BURST_SECONDS` and refills by `RATE`
seconds in each second. A large question waits while the bucket of its user is empty. Nothing is charged unless small
questions about other users were sent within the last second. A question is delayed by at most `LONGEST_DELAY_SECONDS`,
whatever its number of checks. Questions of engines about their users are neither charged nor delayed.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from gateway.access.shares.fair_slots import FairSlots, TokenBuckets

__all__ = ["BATCH", "BURST_SECONDS", "LARGE", "LONGEST_DELAY_SECONDS", "RATE", "Pace", "Pacing"]

#: A question with more checks than LARGE is large, and is sent in batches of BATCH checks.
LARGE: Final = 50
BATCH: Final = 10

RATE: Final = 0.1
BURST_SECONDS: Final = 3.0
LONGEST_DELAY_SECONDS: Final = 15.0
#: The maximum numbers of concurrent batches of large questions, for the process and for one user.
_AT_ONCE, _EACH = 4, 1
#: Large checks are charged to the token buckets for this time after a small check about another user.
_CONTENDED_SECONDS: Final = 1.0


class Pacing:
    """The slots and token buckets of one process for large questions."""

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
        # The latest small questions about two different users, with their times. So one of them is about another user
        # than any given one.
        self._newest: tuple[str, float] = ("", -math.inf)
        self._before: tuple[str, float] = ("", -math.inf)

    def count_small_check(self, user: str) -> None:
        """Record that a small question about the user is being sent."""
        if self._newest[0] != user:
            self._before = self._newest
        self._newest = (user, self._clock())

    def of(self, user: str, *, longest: float = LONGEST_DELAY_SECONDS) -> Pace:
        """Return the rate limiter of one large question about the user, which is delayed by at most `longest` seconds
        in total.
        """
        return Pace(self, user, longest)

    @asynccontextmanager
    async def slot(self, user: str) -> AsyncIterator[None]:
        """Hold a slot during the block. Waiting users get slots in turn."""
        async with self._slots.slot(user):
            yield

    def now(self) -> float:
        """Return the time of the monotonic clock, in seconds."""
        return self._clock()

    async def rest(self, user: str, took: float, *, longest: float) -> float:
        """Charge `took` seconds, wait until the bucket has no debt, and return the seconds of waiting.

        `longest` limits the wait, in seconds. With 0 the question has used up its delay and is not charged any more.
        The wait holds no slot, so other users can proceed.
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
    """The rate limiter of one large question."""

    def __init__(self, pacing: Pacing, user: str, longest: float) -> None:
        self._pacing = pacing
        self._user = user
        self._left = longest

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[None]:
        """Wait for a slot, charge the duration of the block, and wait until the bucket allows the next batch."""
        async with self._pacing.slot(self._user):
            began = self._pacing.now()
            yield
            took = self._pacing.now() - began
        self._left -= await self._pacing.rest(self._user, took, longest=self._left)
