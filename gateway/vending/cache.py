# SPDX-License-Identifier: Apache-2.0
"""Cache of vended credentials, each for half of its lifetime. The key contains everything on which the answer depends.

Without the principal in the key, principals would share a credential: the store's logs could not distinguish them, and
a revocation of one would not affect the other.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol
from weakref import WeakValueDictionary

from cachetools import LRUCache

from gateway.scope.credential import TemporaryCredential
from gateway.scope.level import AccessLevel
from gateway.scope.location import Location

__all__ = ["CachedCredentials", "CredentialCache", "VendKey", "uncached"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VendKey:
    """The cache key. Two requests share a credential only if all values are equal."""

    principal: str
    role: str | None
    context: str
    session_name: str
    location: Location
    level: AccessLevel
    profile_version: str
    credential_digest: str
    seconds: int


Make = Callable[[], Awaitable[TemporaryCredential]]
StillAllowed = Callable[[], Awaitable[None]]


class CredentialCache(Protocol):
    """Returns cached credentials or new ones."""

    async def __call__(
        self, key: VendKey, make: Make, still_allowed: StillAllowed | None = None
    ) -> TemporaryCredential:
        """Return the credential for `key`. `still_allowed` raises if the caller has lost the right meanwhile."""
        ...


class CredentialObserver(Protocol):
    """Receives hits and misses, for metrics."""

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        """Record cache hits and misses of the cache named `cache`."""
        ...


async def uncached(key: VendKey, make: Make, still_allowed: StillAllowed | None = None) -> TemporaryCredential:
    """Make a new credential for every request."""
    if still_allowed is not None:
        await still_allowed()
    return await make()


def _now() -> datetime:
    return datetime.now(UTC)


class CachedCredentials:
    """Returns a cached credential for an equal key while at least half of its lifetime is left.

    The caller was admitted for this request: the cache saves minting, never a decision, and the use case audits each
    credential. Concurrent requests for the same key wait for one, so that the workers of a cluster mint once.
    """

    def __init__(self, *, entries: int, observer: CredentialObserver, clock: Callable[[], datetime] = _now) -> None:
        self._cached: LRUCache[VendKey, TemporaryCredential] = LRUCache(maxsize=entries)
        self._locks: WeakValueDictionary[VendKey, asyncio.Lock] = WeakValueDictionary()
        self._observer = observer
        self._clock = clock

    async def __call__(
        self, key: VendKey, make: Make, still_allowed: StillAllowed | None = None
    ) -> TemporaryCredential:
        """Return the credential for `key`. Raises the errors of `make` and `still_allowed`; then nothing is cached.

        `still_allowed` runs after the wait: a caller that waited for the credential of another request may have lost
        the right meanwhile.
        """
        cached = self._usable(key)
        if cached is None:
            async with self._locks.setdefault(key, asyncio.Lock()):
                if still_allowed is not None:
                    await still_allowed()
                cached = self._usable(key)
                if cached is None:
                    self._observer.count_lookups("credentials", hits=0, misses=1)
                    made = self._cached[key] = await make()
                    return made
        self._observer.count_lookups("credentials", hits=1, misses=0)
        return cached

    def _usable(self, key: VendKey) -> TemporaryCredential | None:
        cached = self._cached.get(key)
        if cached is None or cached.expires_at - self._clock() < timedelta(seconds=key.seconds / 2):
            return None
        return cached
