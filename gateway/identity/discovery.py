# SPDX-License-Identifier: Apache-2.0
"""Read the metadata document of a configured provider (OpenID Connect Discovery 1.0, RFC 8414).

Authlib builds the addresses of the documents and validates the issuer. This module validates the endpoints, more
strictly than Authlib: an https provider must not name a plain http address, not even a loopback address. The requests
for documents have limits on time and size.
"""

from __future__ import annotations

import ipaddress
import ssl
from typing import Any, Final, Protocol, Self
from urllib.parse import urlsplit

import aiohttp
import msgspec
from authlib.oauth2 import rfc8414
from authlib.oidc import discovery

MAX_DOCUMENT_BYTES = 262_144
"""Limit of a response. A discovery document has about 6 KiB, a key set with certificates about 20 KiB."""


class FetchFailed(Exception):
    """A document could not be fetched. The message has the address and the kind of failure, but never the response
    body.
    """


class DocumentMissing(FetchFailed):
    """The server returned 404."""


class Fetcher(Protocol):
    """Fetches one document. Raises `FetchFailed` and no other error."""

    async def __call__(self, url: str) -> bytes:
        """GET `url` and return the body of the 200 response."""


def is_loopback(url: str) -> bool:
    """Return True if the host of `url` is `localhost` or a numeric loopback address. Names are not resolved."""
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
        """GET `url` and return the body. Raises `FetchFailed` unless the status is 200.

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


_TEXT_BYTES: Final = 2_048


def discovery_url(issuer: str) -> str:
    """Return the address of the provider's OpenID Connect document."""
    return str(discovery.get_well_known_url(issuer, external=True))


def oauth_metadata_url(issuer: str) -> str:
    """Return the address of the provider's OAuth document (RFC 8414 section 3.1)."""
    return str(rfc8414.get_well_known_url(issuer, external=True))


class ProviderMetadata:
    """The metadata document of the configured `issuer`, read from `url`."""

    def __init__(self, issuer: str, url: str, document: dict[str, Any]) -> None:
        """Set the document. Raises `FetchFailed` if it belongs to another issuer, or if its issuer is not a valid one.

        OpenID Connect Discovery 1.0 section 4.3 and RFC 8414 section 3.3 require the identical string as issuer.
        """
        self._issuer = issuer
        self._url = url
        self._document = rfc8414.AuthorizationServerMetadata(document)
        if document.get("issuer") != issuer:
            raise FetchFailed(
                f"the document {url} names another issuer than the configured {issuer!r}; both must be the same string"
            )
        try:
            self._document.validate_issuer()
        except ValueError as error:
            raise FetchFailed(f"{url}: {error}") from error

    def endpoint(self, name: str) -> str:
        """Return the endpoint `name`. Raises `FetchFailed` if it is missing or malformed, or is http although the
        issuer is https.
        """
        address = self.optional_endpoint(name)
        if address is None:
            raise FetchFailed(f"{self._url} is not a discovery document: it has no {name}")
        return address

    def optional_endpoint(self, name: str) -> str | None:
        """Return the endpoint `name`, or None if it is missing. Raises `FetchFailed` if it is malformed, or is http
        although the issuer is https.
        """
        address = self._document.get(name)
        if address is None:
            return None
        if not isinstance(address, str) or len(address) > _TEXT_BYTES:
            raise FetchFailed(f"{self._url} is not a discovery document: {name} is not a URL")
        try:
            check_endpoint(address, name)
        except ValueError as error:
            raise FetchFailed(f"{self._url}: {error}") from error
        # An https issuer that names plain http on a loopback address may try to make the gateway call a local service.
        if self._issuer.startswith("https://") and not address.startswith("https://"):
            raise FetchFailed(f"{self._url}: the {name} of an https issuer must begin with https")
        return address


async def read_metadata(issuer: str, fetch: Fetcher) -> ProviderMetadata:
    """Read the OpenID Connect document of the provider, or its OAuth document if the first request returns 404.

    Raises `FetchFailed` if neither can be fetched, if the document is malformed, or if it belongs to another issuer.
    """
    url = discovery_url(issuer)
    try:
        raw = await fetch(url)
    except DocumentMissing:
        url = oauth_metadata_url(issuer)
        raw = await fetch(url)
    try:
        document = msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FetchFailed(f"{url} is not a discovery document: {type(error).__name__}") from error
    return ProviderMetadata(issuer, url, document)


async def find_jwks_uri(issuer: str, fetch: Fetcher) -> str:
    """Return the address of the key set (`jwks_uri`) of the provider at `issuer`.

    Raises `FetchFailed` as `read_metadata` does, and if the address is missing, malformed, or http for an https issuer.
    """
    return (await read_metadata(issuer, fetch)).endpoint("jwks_uri")
