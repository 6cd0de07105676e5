# SPDX-License-Identifier: Apache-2.0
"""Return the provider's addresses for the sign-in on the gateway's web pages.

The browser itself signs in as a public client, with an authorization code and PKCE (RFC 7636, RFC 9700 section 2.1.1).
The gateway receives neither the code nor a password, only the token in later requests, as from any client. It reads the
provider's discovery document for the page, so the Content-Security-Policy can allow a single origin.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from gateway.identity.discovery import Fetcher, FetchFailed, check_endpoint, read_metadata

_FRESH_SECONDS: Final = 300.0
_BETWEEN_TRIES: Final = 10.0
#: A host without characters that could end a source expression of a Content-Security-Policy.
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]", re.ASCII)


class SignIn(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The public client for the sign-in, and the addresses of its provider."""

    issuer: str
    client_id: str
    scope: str
    authorization_endpoint: str
    token_endpoint: str
    end_session_endpoint: str | None = None

    def origins(self) -> tuple[str, ...]:
        """Return the origins to which scripts of the page may send requests: that of the token endpoint.

        The browser navigates to the other addresses, so they need no permission.
        """
        return (origin_of(self.token_endpoint),)


def origin_of(url: str) -> str:
    """Return the scheme, host and port of an address, as a source expression of a Content-Security-Policy.

    Raises ValueError if the host contains characters that could add other content to the policy.
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    name, _, port = host.rpartition(":") if not host.endswith("]") and ":" in host else (host, "", "")
    if not _HOST.fullmatch(name) or not (port.isascii() and (port.isdigit() or not port)):
        raise ValueError(f"the host of {url} cannot be used in a Content-Security-Policy")
    return f"{parts.scheme}://{host.lower()}"


class SignInProvider:
    """A cache of the provider's addresses. They are read at the first use, and again after five minutes."""

    def __init__(
        self,
        fetch: Fetcher,
        *,
        issuer: str,
        client_id: str,
        scope: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set the provider and the client. Raises ValueError if `issuer` is not accepted by `check_endpoint`."""
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
        """Return the addresses for the sign-in, or None if the document could not be read yet.

        If a reload fails, the last known addresses are returned. This is safe: no decision depends on them, and if the
        provider is unavailable, the browser shows it.
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
        """Read the addresses from the provider.

        Raises FetchFailed if the document cannot be fetched, is malformed, belongs to another issuer, or contains an
        address that is not allowed for a browser.
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
