# SPDX-License-Identifier: Apache-2.0
"""Reads the metadata document of a configured provider (OpenID Connect Discovery 1.0, RFC 8414).

Authlib builds the addresses of the documents and validates the issuer. This module validates the endpoints, more
strictly than Authlib: an https provider must not name a plain http address, not even a loopback address.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from authlib.oauth2 import rfc8414
from authlib.oidc import discovery

from gateway.identity.fetch import DocumentMissing, Fetcher, FetchFailed, check_endpoint

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
        """Raise `FetchFailed` if the document belongs to another issuer, or if its issuer is not a valid one.

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
        """Return the endpoint `name`. Raises `FetchFailed` if it is missing, malformed, or http for an https issuer."""
        address = self.optional_endpoint(name)
        if address is None:
            raise FetchFailed(f"{self._url} is not a discovery document: it has no {name}")
        return address

    def optional_endpoint(self, name: str) -> str | None:
        """Return the endpoint `name`, or None if it is missing. Raises `FetchFailed` if it is malformed or http for an
        https issuer.
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
