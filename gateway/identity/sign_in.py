# SPDX-License-Identifier: Apache-2.0
"""What a page of ours has to know of the provider so that people can sign in there: authorization code with PKCE
(RFC 7636, RFC 9700 section 2.1.1), as a public client, from the browser itself.

The gateway takes no part in such a sign-in: it sees neither code nor password, only the token afterwards, as from
everybody else. It only reads the provider's discovery document, so that the page need not and its
Content-Security-Policy can name the one origin it may talk to.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from gateway.identity.discovery import read_metadata
from gateway.identity.fetch import Fetcher, FetchFailed, check_endpoint

_FRESH_SECONDS: Final = 300.0
_BETWEEN_TRIES: Final = 10.0
#: Nothing that could end a source expression of a Content-Security-Policy.
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]", re.ASCII)


class SignIn(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where and as which public client people sign in; the addresses are the provider's own."""

    issuer: str
    client_id: str
    scope: str
    authorization_endpoint: str
    token_endpoint: str
    end_session_endpoint: str | None = None

    def origins(self) -> tuple[str, ...]:
        """What the page asks from its scripts: the origin of the token endpoint. The rest are places to go to."""
        return (origin_of(self.token_endpoint),)


def origin_of(url: str) -> str:
    """Scheme, host and port of an address, as a Content-Security-Policy names them.

    Raises ValueError for a host that could say more there than a host.
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    name, _, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "")
    if not _HOST.fullmatch(name) or not (port.isascii() and (port.isdigit() or not port)):
        raise ValueError(f"{url} has no host that can be named in a Content-Security-Policy")
    return f"{parts.scheme}://{host.lower()}"


class SignInPlace:
    """The provider's addresses, read when they are asked for and kept for five minutes."""

    def __init__(
        self,
        fetch: Fetcher,
        *,
        issuer: str,
        client_id: str,
        scope: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises ValueError when the issuer's address may not be used."""
        check_endpoint(issuer, "the identity provider's URI")
        self._fetch = fetch
        self._issuer = issuer
        self._client_id = client_id
        self._scope = scope
        self._clock = clock
        self._lock = asyncio.Lock()
        self._known: SignIn | None = None
        self._read_at = 0.0
        self._tried_at: float | None = None

    async def __call__(self) -> SignIn | None:
        """Where to sign in; None while the provider has never told. A provider that is down now is where it was: the
        addresses are no proof of anything, and the browser finds out by itself.
        """
        async with self._lock:
            now = self._clock()
            fresh = self._known is not None and now - self._read_at < _FRESH_SECONDS
            waits = self._tried_at is not None and now - self._tried_at < _BETWEEN_TRIES
            if not fresh and not waits:
                self._tried_at = now
                try:
                    self._known = await self._read()
                    self._read_at = now
                except FetchFailed:
                    pass
            return self._known

    async def _read(self) -> SignIn:
        """Raise FetchFailed if the document cannot be had, is none, is of another issuer, or names addresses that a
        browser should not be sent to.
        """
        metadata = await read_metadata(self._issuer, self._fetch)
        found = SignIn(
            issuer=self._issuer,
            client_id=self._client_id,
            scope=self._scope,
            authorization_endpoint=metadata.endpoint("authorization_endpoint"),
            token_endpoint=metadata.endpoint("token_endpoint"),
            end_session_endpoint=metadata.optional_endpoint("end_session_endpoint"),
        )
        try:
            for endpoint in (found.authorization_endpoint, found.token_endpoint, found.end_session_endpoint):
                if endpoint is not None:
                    origin_of(endpoint)
        except ValueError as error:
            raise FetchFailed(str(error)) from error
        return found
