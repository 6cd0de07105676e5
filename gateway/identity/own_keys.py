# SPDX-License-Identifier: Apache-2.0
"""Cache the keys of the gateway's own tokens in one process: Ed25519 (RFC 8037), generated if there is none.

The keys are in the database, and all processes share them. A process reloads them after `RELOAD_SECONDS`, so a revoked
key is accepted for no longer than that. It also reloads them for an unknown key id, because another process may have
just generated that key. All requests with unknown key ids share these reloads, at most one per `MISSED_SECONDS`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol
from uuid import uuid4

import msgspec
from joserfc.jwk import OKPKey

RELOAD_SECONDS: Final = 1.0
MISSED_SECONDS: Final = 0.1
CURVE: Final = "Ed25519"


class KeyRow(Protocol):
    """A public key (`public` is a JWK in JSON). `signs` is True while its private key signs new tokens."""

    @property
    def kid(self) -> str: ...
    @property
    def public(self) -> bytes: ...
    @property
    def signs(self) -> bool: ...


class KeyStore(Protocol):
    """Storage of the keys that all processes share."""

    async def published(self) -> Sequence[KeyRow]:
        """Return the keys that verify now, newest first."""
        ...

    async def private(self, kid: str) -> bytes:
        """Return the private key with the id `kid`, as a JWK in JSON."""
        ...

    async def store(self, kid: str, *, public: bytes, private: bytes) -> None:
        """Store a key that signs from now on. If another key signs already, store nothing."""
        ...


class OwnKeys:
    """The cached keys, for concurrent requests on one event loop. Every method raises the errors of the store."""

    def __init__(
        self,
        store: KeyStore,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._sleep = sleep
        self._clock = clock
        self._public: dict[str, OKPKey] = {}
        self._signs: str | None = None
        self._private: dict[str, OKPKey] = {}
        self._read_at: float | None = None
        self._lock = asyncio.Lock()

    async def verifying(self, kid: str) -> OKPKey | None:
        """Return the public key with the id `kid`, or None if it does not exist or no longer verifies."""
        await self._refresh()
        if kid not in self._public:
            await self._reload()
        return self._public.get(kid)

    async def signing(self) -> tuple[str, OKPKey]:
        """Return (key id, private key) for new signatures. If no process has stored a key, generate one."""
        await self._refresh()
        if self._signs is None:
            key = OKPKey.generate_key(CURVE)
            await self._store.store(str(uuid4()), public=_encoded(key, private=False), private=_encoded(key))
            await self._refresh(now=True)
        kid = self._signs
        if kid is None:
            raise LookupError("a stored signing key is missing")
        if kid not in self._private:
            self._private = {kid: OKPKey.import_key(msgspec.json.decode(await self._store.private(kid)))}
        return kid, self._private[kid]

    async def _refresh(self, *, now: bool = False) -> None:
        if not now and self._fresh():
            return
        async with self._lock:
            if now or not self._fresh():
                await self._read()

    async def _reload(self) -> None:
        """Reload the keys. The load starts after the start of this call. Concurrent calls share one load."""
        arrived = self._clock()
        async with self._lock:
            if self._read_at is not None:
                if self._read_at > arrived:
                    return
                await self._sleep(max(0.0, self._read_at + MISSED_SECONDS - self._clock()))
            await self._read()

    async def _read(self) -> None:
        started = self._clock()
        rows = await self._store.published()
        self._public = {row.kid: self._public.get(row.kid) or _decoded(row.public) for row in rows}
        self._signs = next((row.kid for row in rows if row.signs), None)
        self._read_at = started

    def _fresh(self) -> bool:
        return self._read_at is not None and self._clock() - self._read_at < RELOAD_SECONDS


def _encoded(key: OKPKey, *, private: bool = True) -> bytes:
    return msgspec.json.encode(key.as_dict(private=private))


def _decoded(public: bytes) -> OKPKey:
    return OKPKey.import_key(msgspec.json.decode(public))
