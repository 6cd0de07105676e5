# SPDX-License-Identifier: Apache-2.0
"""GET of a JSON document from the configured identity provider, with limits on time and size."""

import ipaddress
import ssl
from typing import Protocol, Self
from urllib.parse import urlsplit

import aiohttp

MAX_DOCUMENT_BYTES = 262_144
"""Limit of a response. A discovery document has about 6 KiB, a key set with certificates about 20 KiB."""


class FetchFailed(Exception):
    """A document could not be fetched. The text names the address and the kind of failure, never the response body."""


class DocumentMissing(FetchFailed):
    """The server returned 404."""


class Fetcher(Protocol):
    """Fetches one document. Raises `FetchFailed` and no other error."""

    async def __call__(self, url: str) -> bytes:
        """GET `url` and return the body of the 200 response."""


def is_loopback(url: str) -> bool:
    """Return True if the host of `url` is `localhost` or a numeric loopback address. No name is resolved."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_endpoint(url: str, setting: str) -> None:
    """Raise `ValueError` unless `url` is https, or plain http to a loopback address.

    `setting` is the name of the URL in error messages.

    A user, a password, a fragment, blanks, control characters, backslashes and characters outside of ASCII are rejected
    too. An attacker on the network could replace keys that are fetched over plain http, and impersonate every user.
    """
    try:
        parts = urlsplit(url)
        well_formed = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        well_formed = False
    if not well_formed or any(ord(c) <= 0x20 or ord(c) >= 0x7F or c == "\\" for c in url):
        raise ValueError(f"{setting} is not an absolute URL")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise ValueError(f"{setting} must not contain a user, a password or a fragment")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(url)):
        raise ValueError(f"{setting} must begin with https (http is allowed for loopback addresses only)")


class HttpFetcher:
    """A `Fetcher` over aiohttp without redirects, cookies, or a proxy from the environment.

    Create it inside the running event loop: `async with HttpFetcher() as fetch`. `timeout_seconds` limits a whole
    request, `max_bytes` its response. `tls` has the certificates to trust; None means those of the system.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float = 5.0,
        max_bytes: int = MAX_DOCUMENT_BYTES,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = tls
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        self._max_bytes = max_bytes
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._tls or True),
            timeout=self._timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            headers={"Accept": "application/json"},
        )
        return self

    async def __aexit__(self, *_exc: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __call__(self, url: str) -> bytes:
        """GET `url` and return the body. Raises `FetchFailed` for any status other than 200.

        Redirects are not followed: a redirect could make another host the source of the keys.
        """
        if self._session is None:
            raise FetchFailed("the fetcher is not open")
        try:
            async with self._session.get(url, allow_redirects=False) as answer:
                if answer.status == 404:
                    raise DocumentMissing(f"{url} answered with status 404 instead of 200")
                if answer.status != 200:
                    raise FetchFailed(f"{url} answered with status {answer.status} instead of 200")
                return await self._bounded(answer, url)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise FetchFailed(f"{url} could not be fetched: {type(error).__name__}") from error

    async def _bounded(self, answer: aiohttp.ClientResponse, url: str) -> bytes:
        body = bytearray()
        async for chunk in answer.content.iter_chunked(16_384):
            body += chunk
            if len(body) > self._max_bytes:
                raise FetchFailed(f"the response of {url} has more than {self._max_bytes} bytes")
        return bytes(body)
