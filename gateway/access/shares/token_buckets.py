# SPDX-License-Identifier: Apache-2.0
"""A token bucket for each principal. Pure: callers pass the current time, in seconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class _Bucket:
    level: float
    at: float


class TokenBuckets:
    """Token buckets. Each principal receives `rate` tokens a second, up to `burst`; a reservation may overdraw its
    bucket.
    """

    def __init__(self, rate: float, burst: float, *, principals: int = 100_000) -> None:
        """Set the limits. Raises ValueError for a rate or burst that is not positive.

        `principals` limits the buckets in memory: full ones are dropped first, since a new bucket is full.
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
        """Return the number of tokens of the principal; negative while reservations wait."""
        bucket = self._buckets.get(principal)
        return self._burst if bucket is None else self._filled(bucket, now)

    def reserve(self, principal: str, tokens: float, now: float, *, longest: float) -> tuple[bool, float]:
        """Take `tokens`. Return (True, seconds to wait before use), or (False, seconds until a retry can succeed).

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
        """Return the tokens of a reservation that was not used."""
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
