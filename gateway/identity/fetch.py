# SPDX-License-Identifier: Apache-2.0
"""The one way this room talks to the network: a bounded GET of a JSON document from the configured identity
provider.
"""

import ipaddress
import ssl
from typing import Protocol, Self
from urllib.parse import urlsplit

import aiohttp

MAX_DOCUMENT_BYTES = 262_144
"""A discovery document has about 6 KiB and a key set with certificates about 20 KiB; a provider that sends more is
broken or hostile.
"""


class FetchFailed(Exception):
    """A document could not be had. The text names the address and the kind of failure and never the content of an
    answer.
    """


class DocumentMissing(FetchFailed):
    """The server answered 404."""


class Fetcher(Protocol):
    """Fetches one document; raises `FetchFailed` and nothing else. Tests give a table of documents instead of a
    network.
    """

    async def __call__(self, url: str) -> bytes:
        """Return the body of a 200 answer to GET `url`."""


def is_loopback(url: str) -> bool:
    """True when the host of `url` is `localhost` or a loopback address written as a number (no name is resolved)."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_endpoint(url: str, what: str) -> None:
    """Raise `ValueError` unless `url` is https, or plain http to this very machine, and carries no user, password,
    query or fragment.

    Keys fetched in the clear could be replaced by anybody on the way, and with them every identity.
    """
    try:
        parts = urlsplit(url)
        well_formed = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        well_formed = False
    if not well_formed or any(ord(c) <= 0x20 or ord(c) >= 0x7F or c == "\\" for c in url):
        raise ValueError(f"{what} is not an absolute URL")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise ValueError(f"{what} must not contain a user, a password or a fragment")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(url)):
        raise ValueError(f"{what} must be https (plain http only to a loopback address)")


class HttpFetcher:
    """`Fetcher` over aiohttp: no redirects, no proxy from the environment, no cookies, bounded time and size.

    Make it inside the running loop: `async with HttpFetcher() as fetch`.
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
        """GET `url`. A redirect is a failure: following one would let a document name the host that vouches for
        everybody.
        """
        if self._session is None:
            raise FetchFailed("the fetcher is not open")
        try:
            async with self._session.get(url, allow_redirects=False) as answer:
                if answer.status == 404:
                    raise DocumentMissing(f"{url} answered 404 instead of 200")
                if answer.status != 200:
                    raise FetchFailed(f"{url} answered {answer.status} instead of 200")
                return await self._bounded(answer, url)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise FetchFailed(f"{url} could not be fetched: {type(error).__name__}") from error

    async def _bounded(self, answer: aiohttp.ClientResponse, url: str) -> bytes:
        body = bytearray()
        async for chunk in answer.content.iter_chunked(16_384):
            body += chunk
            if len(body) > self._max_bytes:
                raise FetchFailed(f"{url} answered more than {self._max_bytes} bytes")
        return bytes(body)
