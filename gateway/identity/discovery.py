# SPDX-License-Identifier: Apache-2.0
"""Reads the discovery document of the one configured provider (OpenID Connect Discovery 1.0)."""

import msgspec

from gateway.identity.fetch import Fetcher, FetchFailed, check_endpoint

_WELL_KNOWN = "/.well-known/openid-configuration"


class _Document(msgspec.Struct, frozen=True):
    issuer: str
    jwks_uri: str


def discovery_url(issuer: str) -> str:
    """Address of the provider's document: section 4.1 removes a trailing slash of the issuer before the path is
    appended.
    """
    return issuer.removesuffix("/") + _WELL_KNOWN


async def find_jwks_uri(issuer: str, fetch: Fetcher) -> str:
    """Ask the provider at `issuer` where its keys are.

    Raises `FetchFailed` when the document cannot be had, is malformed, speaks for another issuer (section 4.3
    demands the identical string: a slash more or another letter case is another issuer) or points to keys at an
    address that is less protected than the issuer itself.
    """
    url = discovery_url(issuer)
    try:
        document = msgspec.json.decode(await fetch(url), type=_Document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FetchFailed(f"{url} is not a discovery document: {type(error).__name__}") from error
    if document.issuer != issuer:
        raise FetchFailed(
            f"{url} speaks for another issuer than the configured {issuer!r}; both must be the identical string"
        )
    try:
        check_endpoint(document.jwks_uri, "jwks_uri")
    except ValueError as error:
        raise FetchFailed(f"{url}: {error}") from error
    # An https provider that sends us to plain http on our own machine is an attempt to reach what listens there.
    if issuer.startswith("https://") and not document.jwks_uri.startswith("https://"):
        raise FetchFailed(f"{url}: jwks_uri of an https issuer must be https")
    return document.jwks_uri
