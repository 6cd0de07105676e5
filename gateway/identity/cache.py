# SPDX-License-Identifier: Apache-2.0
"""Cache verified tokens, so that the signature of a token is not verified again for each request of a client."""

import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

from cachetools import LRUCache

from gateway.identity.tokens import VerifiedToken

TOKENS: Final = 10_000
"""Verified tokens that a cache holds at most."""


class TokenObserver(Protocol):
    """Receiver of the numbers of hits and misses of a cache, for metrics."""

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        """Count `hits` and `misses` of the cache that is named `cache`."""
        ...


@dataclass(frozen=True, slots=True)
class _Known:
    """A cached token, the key generation that verified it, and its cache expiry (monotonic clock, in seconds)."""

    token: VerifiedToken
    generation: int
    forgotten_at: float


class CachedTokens:
    """Verifies tokens with `verify` and caches the verified ones. The cache key is the SHA-256 of the token.

    A cached token is used until its own expiry (`exp`, without skew; the verifier applies the skew), and for at most
    `seconds`. It is used only while `generation` returns the same number, which changes when the provider's keys
    change. Rejected tokens are not cached, because unauthenticated clients could fill the cache with them. The cache
    holds at most `entries` tokens.
    """

    def __init__(
        self,
        verify: Callable[[str], Awaitable[VerifiedToken]],
        *,
        generation: Callable[[], int],
        entries: int = TOKENS,
        seconds: float,
        observer: TokenObserver,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._verify = verify
        self._generation = generation
        self._seconds = seconds
        self._observer = observer
        self._clock = clock
        self._monotonic = monotonic
        self._known: LRUCache[bytes, _Known] = LRUCache(maxsize=entries)

    async def verify(self, token: str) -> VerifiedToken:
        """Return the verified token, from the cache if possible. Raises the errors of the verifier."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        known = self._known.get(digest)
        if known is not None and self._holds(known):
            self._observer.count_lookups("tokens", hits=1, misses=0)
            return known.token
        self._observer.count_lookups("tokens", hits=0, misses=1)
        generation = self._generation()
        verified = await self._verify(token)
        # If the keys were loaded or replaced during this verification, it is unknown which generation of keys verified
        # the token. The token is cached at its next verification.
        if self._seconds > 0 and generation == self._generation():
            self._known[digest] = _Known(verified, generation, self._monotonic() + self._seconds)
        return verified

    def _holds(self, known: _Known) -> bool:
        fresh = known.generation == self._generation() and self._monotonic() < known.forgotten_at
        return fresh and self._clock() < known.token.expires_at
