# SPDX-License-Identifier: Apache-2.0
"""The keys of the gateway's own tokens, as one process knows them: Ed25519 (RFC 8037), made when there is none.

They lie in the database, so every process has the same. A process reads them again after `RELOAD_SECONDS`, so a key
that was withdrawn counts for no longer than that; and for a key id that it does not know, since another process may
have made that key a moment ago. Made-up key ids wait for that reading together, every `MISSED_SECONDS` at most.
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
    """The public half of a key, a JWK in JSON, and whether it still signs."""

    @property
    def kid(self) -> str: ...
    @property
    def public(self) -> bytes: ...
    @property
    def signs(self) -> bool: ...


class KeyStore(Protocol):
    """Where the keys of all processes are."""

    async def published(self) -> Sequence[KeyRow]:
        """The keys that verify now, the newest first."""
        ...

    async def private(self, kid: str) -> bytes:
        """The private half of one."""
        ...

    async def keep(self, kid: str, *, public: bytes, private: bytes) -> None:
        """Let this key sign from now on, unless another one does."""
        ...


class OwnKeys:
    """For any number of concurrent requests on one event loop. Every method raises what the store raises."""

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
        self._turn = asyncio.Lock()

    async def verifying(self, kid: str) -> OKPKey | None:
        """The key of this id, None when there is none, or none any more."""
        await self._refresh()
        if kid not in self._public:
            await self._look_again()
        return self._public.get(kid)

    async def signing(self) -> tuple[str, OKPKey]:
        """(key id, private key) to sign with; made here when no process has made one."""
        await self._refresh()
        if self._signs is None:
            key = OKPKey.generate_key(CURVE)
            await self._store.keep(str(uuid4()), public=_encoded(key, private=False), private=_encoded(key))
            await self._refresh(now=True)
        kid = self._signs
        if kid is None:
            raise LookupError("a signing key was kept and is not there")
        if kid not in self._private:
            self._private = {kid: OKPKey.import_key(msgspec.json.decode(await self._store.private(kid)))}
        return kid, self._private[kid]

    async def _refresh(self, *, now: bool = False) -> None:
        if not now and self._fresh():
            return
        async with self._turn:
            if now or not self._fresh():
                await self._read()

    async def _look_again(self) -> None:
        """Read the keys as they are after this call began, with everybody who waits for the same."""
        arrived = self._clock()
        async with self._turn:
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
