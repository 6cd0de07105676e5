# SPDX-License-Identifier: Apache-2.0
"""Cache vended credentials for half of their life. The key holds everything that could make two answers differ.

Without the actor in the key, principals would share a credential: the store's logs could not distinguish them, and a
revocation of one would not reach the other.
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

__all__ = ["CredentialCache", "RememberedCredentials", "VendKey", "uncached"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VendKey:
    """Two requests may share a credential only when all of these are equal."""

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
    """Decides whether a credential that was made before can serve."""

    async def __call__(
        self, key: VendKey, make: Make, still_allowed: StillAllowed | None = None
    ) -> TemporaryCredential:
        """The credential for `key`. `still_allowed` raises when the caller may not have one any more."""
        ...


class CredentialObserver(Protocol):
    """Receives hits and misses, for metrics."""

    def remembered(self, memory: str, *, hits: int, misses: int) -> None:
        """So many credentials were at hand, and so many had to be made."""
        ...


async def uncached(key: VendKey, make: Make, still_allowed: StillAllowed | None = None) -> TemporaryCredential:
    """Make a new credential for every request."""
    if still_allowed is not None:
        await still_allowed()
    return await make()


def _now() -> datetime:
    return datetime.now(UTC)


class RememberedCredentials:
    """Return a cached credential for an equal key while at least half of its life is left.

    The caller has been admitted for it now: only minting is saved, never a decision, and the use case audits each
    credential. Requests for the same key wait for one another, so that a cluster's workers mint once.
    """

    def __init__(self, *, entries: int, observer: CredentialObserver, clock: Callable[[], datetime] = _now) -> None:
        self._kept: LRUCache[VendKey, TemporaryCredential] = LRUCache(maxsize=entries)
        self._turns: WeakValueDictionary[VendKey, asyncio.Lock] = WeakValueDictionary()
        self._observer = observer
        self._clock = clock

    async def __call__(
        self, key: VendKey, make: Make, still_allowed: StillAllowed | None = None
    ) -> TemporaryCredential:
        """Return the credential for `key`. Raises the errors of `make` and `still_allowed`; then nothing is cached.

        `still_allowed` runs after the wait: a caller that waited for another one's credential may have lost the right
        meanwhile.
        """
        kept = self._usable(key)
        if kept is None:
            async with self._turns.setdefault(key, asyncio.Lock()):
                if still_allowed is not None:
                    await still_allowed()
                kept = self._usable(key)
                if kept is None:
                    self._observer.remembered("credentials", hits=0, misses=1)
                    made = self._kept[key] = await make()
                    return made
        self._observer.remembered("credentials", hits=1, misses=0)
        return kept

    def _usable(self, key: VendKey) -> TemporaryCredential | None:
        kept = self._kept.get(key)
        if kept is None or kept.expires_at - self._clock() < timedelta(seconds=key.seconds / 2):
            return None
        return kept
