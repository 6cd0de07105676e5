# SPDX-License-Identifier: Apache-2.0
"""Provisioning tokens, which the gateway issues to directories that manage users with SCIM.

Entra ID and Okta send the same static token with each request, for months. It is not a JWT that could be verified with
a public key. So the gateway generates these tokens from 256 random bits and stores only a digest. Each request reads
the stored row, so a revocation applies to the next request. The tokens are valid for `/scim/v2` only.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from typing import Final, Protocol
from uuid import UUID

import msgspec

from gateway.identity.errors import AuthenticationFailed, Refusal

PREFIX: Final = "lgscim_"
_TOKEN: Final = re.compile(r"lgscim_(?P<id>[0-9a-f]{32})_[A-Za-z0-9_-]{43}", re.ASCII)


class TokenRow(Protocol):
    """The stored row of a provisioning token."""

    @property
    def provider_id(self) -> str: ...
    @property
    def project_id(self) -> str: ...
    @property
    def digest(self) -> bytes: ...


class TokenStore(Protocol):
    """Storage of the provisioning tokens."""

    async def find_valid(self, id: UUID) -> TokenRow | None:
        """Return the token with this id, or None if it does not exist, is revoked or has expired."""
        ...


class ProvisioningToken(msgspec.Struct, frozen=True, kw_only=True):
    """A verified token: the identity provider of the directory, and the project in which groups of the directory become
    roles.
    """

    provider_id: str
    project_id: str


def made(id: UUID) -> tuple[str, bytes]:
    """Generate a token with this id and return (token, digest to store)."""
    text = f"{PREFIX}{id.hex}_{base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip('=')}"
    return text, _digest(text)


def has_token_type(token: str) -> bool:
    """Return True if the token has the prefix of provisioning tokens.

    The caller must then verify the token only as a provisioning token.
    """
    return token.startswith(PREFIX)


async def verify(token: str, store: TokenStore) -> ProvisioningToken:
    """Verify a provisioning token. Raises AuthenticationFailed, and the errors of the store."""
    matched = _TOKEN.fullmatch(token)
    row = None if matched is None else await store.find_valid(UUID(matched["id"]))
    if row is None or not hmac.compare_digest(bytes(row.digest), _digest(token)):
        raise AuthenticationFailed(
            "the provisioning token is unknown, revoked or expired; the operator can issue a new one with `lakegate "
            "secrets scim-token issue`",
            Refusal.REVOKED,
        )
    return ProvisioningToken(provider_id=row.provider_id, project_id=row.project_id)


def _digest(token: str) -> bytes:
    # No salt and no slow hash: the token has 256 random bits, so it cannot be guessed from its digest.
    return hashlib.sha256(token.encode()).digest()
