# SPDX-License-Identifier: Apache-2.0
"""Cache vended credentials, each for half of its lifetime.

The cache key contains everything on which the credential depends, and also the principal. Otherwise principals would
share a credential: the store's logs could not distinguish them, and a revocation for one would not affect the other.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

from cachetools import LRUCache

from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location

__all__ = ["CachedCredentials", "CredentialCache", "VendKey", "uncached"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VendKey:
    """The cache key. Requests share a credential only if all values of their keys are equal."""

    principal: str
    role: str | None
    context: str
    session_name: str
    location: Location
    level: AccessLevel
    profile_version: str
    credential_digest: str
    seconds: int


class Expiring(Protocol):
    """A value with an expiry, which can be cached until half of its lifetime is left."""

    @property
    def expires_at(self) -> datetime:
        """Return the expiry as an aware datetime in UTC."""
        ...


Made = TypeVar("Made", bound=Expiring)
StillAllowed = Callable[[], Awaitable[None]]


class CredentialCache(Protocol):
    """A function that returns cached credentials or new ones."""

    async def __call__(
        self, key: VendKey, make: Callable[[], Awaitable[Made]], still_allowed: StillAllowed | None = None
    ) -> Made:
        """Return the credential for `key`. `still_allowed` raises if the caller has lost the right meanwhile."""
        ...


class CredentialObserver(Protocol):
    """Receiver of the numbers of cache hits and misses, for metrics."""

    def count_lookups(self, cache: str, *, hits: int, misses: int) -> None:
        """Record cache hits and misses of the cache named `cache`."""
        ...


async def uncached(
    key: VendKey, make: Callable[[], Awaitable[Made]], still_allowed: StillAllowed | None = None
) -> Made:
    """Make a new credential for every request."""
    await _require(still_allowed)
    return await make()


def _now() -> datetime:
    return datetime.now(UTC)


class _Flight:
    """The creation of one credential in a separate task, and the number of requests that wait for it."""

    __slots__ = ("task", "waiting")

    def __init__(self, make: Callable[[], Awaitable[Any]]) -> None:
        self.task: asyncio.Future[Any] = asyncio.ensure_future(make())
        self.waiting = 0


class CachedCredentials:
    """Returns a cached credential for an equal key while at least half of the credential's lifetime is left.

    The caller was admitted for this request: the cache avoids the creation of credentials, never a decision, and the
    use case audits each credential. Concurrent requests for the same key share one creation. It is cancelled only if no
    request waits for it any more, so a cancelled request does not affect the others.
    """

    def __init__(self, *, entries: int, observer: CredentialObserver, clock: Callable[[], datetime] = _now) -> None:
        self._cached: LRUCache[VendKey, Any] = LRUCache(maxsize=entries)
        self._flights: dict[VendKey, _Flight] = {}
        self._observer = observer
        self._clock = clock

    async def __call__(
        self, key: VendKey, make: Callable[[], Awaitable[Made]], still_allowed: StillAllowed | None = None
    ) -> Made:
        """Return the credential for `key`. Raises the errors of `make` and `still_allowed`; then nothing is cached.

        `still_allowed` is awaited just before `make`, and after the wait for a creation that another request started:
        the caller may have lost the right meanwhile. If that creation fails, the credential is created again, so that
        no request fails because of another one.
        """
        cached: Made | None = self._usable(key)
        if cached is not None:
            self._observer.count_lookups("credentials", hits=1, misses=0)
            return cached
        flight = self._flights.get(key)
        if flight is not None:
            made: Made | None = await self._result_of_other(key, flight)
            await _require(still_allowed)
            if made is not None:
                self._observer.count_lookups("credentials", hits=1, misses=0)
                return made
        else:
            await _require(still_allowed)
        # Another request may have started or finished a creation during these waits.
        cached = self._usable(key)
        if cached is not None:
            self._observer.count_lookups("credentials", hits=1, misses=0)
            return cached
        flight = self._flights.get(key)
        shared = flight is not None
        self._observer.count_lookups("credentials", hits=int(shared), misses=int(not shared))
        result: Made = await self._wait(key, flight or self._start(key, make))
        if shared:
            await _require(still_allowed)
        return result

    def _start(self, key: VendKey, make: Callable[[], Awaitable[Any]]) -> _Flight:
        async def kept() -> Any:
            made = self._cached[key] = await make()
            return made

        def ended(task: asyncio.Future[Any]) -> None:
            self._forget(key, flight)
            if not task.cancelled():
                # Marks an error as retrieved, so that asyncio does not log it: if all requests were cancelled, none
                # retrieves the error.
                task.exception()

        flight = self._flights[key] = _Flight(kept)
        flight.task.add_done_callback(ended)
        return flight

    def _forget(self, key: VendKey, flight: _Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]

    async def _wait(self, key: VendKey, flight: _Flight) -> Any:
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                # Later requests must not wait for a creation that is being cancelled.
                self._forget(key, flight)
                flight.task.cancel()

    async def _result_of_other(self, key: VendKey, flight: _Flight) -> Any:
        """Return the credential that another request creates; None if that creation fails."""
        try:
            return await self._wait(key, flight)
        except Exception:  # the request that started the creation raises the error
            return None

    def _usable(self, key: VendKey) -> Any:
        cached = self._cached.get(key)
        if cached is None or cached.expires_at - self._clock() < timedelta(seconds=key.seconds / 2):
            return None
        return cached


async def _require(still_allowed: StillAllowed | None) -> None:
    if still_allowed is not None:
        await still_allowed()
