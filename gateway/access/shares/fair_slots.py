# SPDX-License-Identifier: Apache-2.0
"""Slots for concurrent work, and token buckets, both shared fairly among principals.

Free slots are given to the waiting principals in turn (round-robin), not in the order of arrival. All state belongs to
one event loop; the classes are not thread-safe.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


class TooManyWaiting(Exception):
    """The principal has the maximum number of waiters already."""


class FairSlots:
    """Slots that principals share fairly: at most `total` in use, and at most `each` of them by one principal.

    Each principal has a queue of at most `waiting` waiters (None: no limit). A free slot is given to the first waiter
    of the next principal in turn.
    """

    def __init__(self, total: int, *, each: int, waiting: int | None = None) -> None:
        """Set the limits. Raises ValueError if one is below 1, or `waiting` is negative."""
        if total < 1 or each < 1 or (waiting is not None and waiting < 0):
            raise ValueError(f"slots: total {total} and each {each} must be at least 1, waiting {waiting} at least 0")
        self._total = total
        self._each = each
        self._waiting = waiting
        self._held: dict[str, int] = {}
        self._in_use = 0
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def in_use(self) -> int:
        """The number of slots in use."""
        return self._in_use

    @property
    def is_full(self) -> bool:
        """True if no slot is free."""
        return self._in_use >= self._total

    def resize(self, total: int, *, each: int) -> None:
        """Change the limits. Slots in use above the new limits are kept until their release."""
        grown = total > self._total or each > self._each
        self._total = total
        self._each = each
        if grown:
            self._grant()

    def position_of(self, principal: str) -> int:
        """Return the position that a new waiter of the principal would have among all waiters; 1 is the next.

        The new waiter needs one turn for itself and one for each earlier waiter of its principal. In each turn, every
        other waiting principal gets a slot first. The result is 0 if a slot is free or no other principal waits: then
        it waits only for requests of its own principal.
        """
        others = len(self._queues) - (principal in self._queues)
        if not self.is_full or not others:
            return 0
        return (len(self._queues.get(principal, ())) + 1) * (others + 1)

    def try_acquire(self, principal: str) -> bool:
        """Take a slot without waiting. Return False if none is free for the principal.

        It never overtakes a waiter: a waiter that could use a free slot has already received it.
        """
        if principal in self._queues or not self._is_free_for(principal):
            return False
        self._take(principal)
        return True

    async def acquire(self, principal: str) -> None:
        """Wait for a slot, and take it.

        Raises TooManyWaiting immediately if the principal's queue is full. A cancelled waiter leaves its queue, and
        holds no slot.
        """
        if self.try_acquire(principal):
            return
        queue = self._queues.get(principal)
        if self._waiting is not None and (0 if queue is None else len(queue)) >= self._waiting:
            raise TooManyWaiting(principal)
        if queue is None:
            queue = self._queues[principal] = deque()
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(granted)
        try:
            await granted
        except BaseException:
            if granted.done() and not granted.cancelled():
                # The slot was granted at the moment of the cancellation. Pass it to the next waiter.
                self.release(principal)
            else:
                self._leave(principal, granted)
            raise

    def release(self, principal: str) -> None:
        """Release a slot, and give it to the next waiter. Raises ValueError if the principal holds none."""
        held = self._held.get(principal, 0)
        if held < 1:
            raise ValueError(f"no slot of {principal!r} to release")
        if held == 1:
            del self._held[principal]
        else:
            self._held[principal] = held - 1
        self._in_use -= 1
        self._grant()

    @asynccontextmanager
    async def slot(self, principal: str) -> AsyncIterator[None]:
        """Hold a slot during the block. Raises TooManyWaiting."""
        await self.acquire(principal)
        try:
            yield
        finally:
            self.release(principal)

    def _is_free_for(self, principal: str) -> bool:
        return self._in_use < self._total and self._held.get(principal, 0) < self._each

    def _take(self, principal: str) -> None:
        self._held[principal] = self._held.get(principal, 0) + 1
        self._in_use += 1

    def _grant(self) -> None:
        """Give free slots to waiters, one for each principal in turn."""
        while self._in_use < self._total:
            principal = next((each for each in self._queues if self._is_free_for(each)), None)
            if principal is None:
                return
            queue = self._queues[principal]
            granted = queue.popleft()
            if queue:
                self._queues.move_to_end(principal)
            else:
                del self._queues[principal]
            # A future can be cancelled before its task has left the queue. A cancelled future takes no slot.
            if not granted.done():
                self._take(principal)
                granted.set_result(None)

    def _leave(self, principal: str, granted: asyncio.Future[None]) -> None:
        queue = self._queues.get(principal)
        if queue is not None and granted in queue:
            queue.remove(granted)
            if not queue:
                del self._queues[principal]


@dataclass(slots=True)
class _Bucket:
    level: float
    at: float


class TokenBuckets:
    """Token buckets, one for each principal. It receives `rate` tokens a second, up to `burst`.

    A reservation may take more tokens than the bucket has.
    """

    def __init__(self, rate: float, burst: float, *, principals: int = 100_000) -> None:
        """Set the limits. Raises ValueError for a rate or burst that is not positive.

        `principals` limits the number of buckets in memory. Full buckets are dropped first, because a new bucket is
        full too.
        """
        if rate <= 0 or burst <= 0:
            raise ValueError(f"a token bucket needs a positive rate and burst, not {rate} and {burst}")
        self._rate = rate
        self._burst = burst
        self._principals = principals
        self._buckets: dict[str, _Bucket] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def level(self, principal: str, now: float) -> float:
        """Return the number of tokens of the principal. It is negative while reservations wait."""
        bucket = self._buckets.get(principal)
        return self._burst if bucket is None else self._filled(bucket, now)

    def reserve(self, principal: str, tokens: float, now: float, *, longest: float) -> tuple[bool, float]:
        """Take `tokens` from the principal's bucket. Return (True, seconds to wait before use), or (False, seconds
        until a retry can succeed).

        Nothing is taken if the wait would exceed `longest` seconds. More tokens than `burst` count as `burst`, because
        a request that no bucket can hold would otherwise always be refused.
        """
        tokens = min(tokens, self._burst)
        level = self.level(principal, now)
        wait = max(0.0, (tokens - level) / self._rate)
        if wait > longest:
            return False, wait - longest
        bucket = self._buckets.get(principal)
        if bucket is None:
            self._make_room(now)
            bucket = self._buckets[principal] = _Bucket(self._burst, now)
        bucket.level, bucket.at = level - tokens, now
        return True, wait

    def refund(self, principal: str, tokens: float, now: float) -> None:
        """Give back the tokens of a reservation that was not used."""
        bucket = self._buckets.get(principal)
        if bucket is not None:
            bucket.level, bucket.at = min(self._burst, self._filled(bucket, now) + min(tokens, self._burst)), now

    def _filled(self, bucket: _Bucket, now: float) -> float:
        return min(self._burst, bucket.level + max(0.0, now - bucket.at) * self._rate)

    def _make_room(self, now: float) -> None:
        if len(self._buckets) < self._principals:
            return
        for principal in [each for each, bucket in self._buckets.items() if self._filled(bucket, now) >= self._burst]:
            del self._buckets[principal]
        while len(self._buckets) >= self._principals:
            del self._buckets[next(iter(self._buckets))]
