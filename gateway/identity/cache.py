# SPDX-License-Identifier: Apache-2.0
"""Tokens that were verified a moment ago, so that a signature is not checked again for each of a client's requests."""

import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from cachetools import LRUCache

from gateway.identity.tokens import VerifiedToken


class TokenObserver(Protocol):
    """Is told how often memory helps, for metrics."""

    def remembered(self, memory: str, *, hits: int, misses: int) -> None:
        """So many tokens were known, and so many were not."""
        ...


@dataclass(frozen=True, slots=True)
class _Known:
    token: VerifiedToken
    generation: int
    forgotten_at: float


class RememberedTokens:
    """Verifies by `verify` and remembers what was good, under the token's SHA-256 and never the token itself.

    A token counts as verified until its own expiry (`exp`; the skew that is allowed for is left to the verifier), for
    at most `seconds`, and only while the provider publishes the keys it was verified by (`generation`). What was
    refused is not remembered: strangers could fill the memory with it.
    """

    def __init__(
        self,
        verify: Callable[[str], Awaitable[VerifiedToken]],
        *,
        generation: Callable[[], int],
        entries: int,
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
        """What `token` proves. Raises what verifying raises."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        known = self._known.get(digest)
        if known is not None and self._holds(known):
            self._observer.remembered("tokens", hits=1, misses=0)
            return known.token
        self._observer.remembered("tokens", hits=0, misses=1)
        generation = self._generation()
        verified = await self._verify(token)
        # The keys may have been loaded, or exchanged, for this very token: it is remembered from the next time on.
        if self._seconds > 0 and generation == self._generation():
            self._known[digest] = _Known(verified, generation, self._monotonic() + self._seconds)
        return verified

    def _holds(self, known: _Known) -> bool:
        fresh = known.generation == self._generation() and self._monotonic() < known.forgotten_at
        return fresh and self._clock() < known.token.expires_at
