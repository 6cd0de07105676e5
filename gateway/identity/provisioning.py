# SPDX-License-Identifier: Apache-2.0
"""The gateway's own tokens for directories that keep users here (SCIM).

Entra ID and Okta send one text with each request for months: no token of theirs that could be verified. So the gateway
makes these texts itself: 256 random bits, kept as a digest, looked up for each request, so that a revoked one is over
with the next. They open `/scim/v2` and nothing else.
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

from gateway.identity.errors import AuthenticationFailed

PREFIX: Final = "lgscim_"
_TOKEN: Final = re.compile(r"lgscim_(?P<id>[0-9a-f]{32})_[A-Za-z0-9_-]{43}", re.ASCII)


class TokenRow(Protocol):
    """What is kept of a token."""

    @property
    def provider_id(self) -> str: ...
    @property
    def project_id(self) -> str: ...
    @property
    def digest(self) -> bytes: ...


class TokenStore(Protocol):
    """Where tokens are known."""

    async def good(self, id: UUID) -> TokenRow | None:
        """The token of this id if it is neither revoked nor over."""
        ...


class ProvisioningToken(msgspec.Struct, frozen=True, kw_only=True):
    """What a token proves: the provider whose directory comes with it, and the project its groups are roles of."""

    provider_id: str
    project_id: str


def made(id: UUID) -> tuple[str, bytes]:
    """(a new token of this id, what is kept of it)."""
    text = f"{PREFIX}{id.hex}_{base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip('=')}"
    return text, _digest(text)


def claims_to_be_one(token: str) -> bool:
    """Whether the token says of itself that it is of this kind. Then it is judged as one and as nothing else."""
    return token.startswith(PREFIX)


async def verify(token: str, store: TokenStore) -> ProvisioningToken:
    """What the token proves. Raises AuthenticationFailed, and what the store raises."""
    matched = _TOKEN.fullmatch(token)
    row = None if matched is None else await store.good(UUID(matched["id"]))
    if row is None or not hmac.compare_digest(bytes(row.digest), _digest(token)):
        raise AuthenticationFailed("the token for provisioning is not one of this server's, was revoked or is over")
    return ProvisioningToken(provider_id=row.provider_id, project_id=row.project_id)


def _digest(token: str) -> bytes:
    # No salt and no slow hash: what is hashed is random and not chosen by anybody.
    return hashlib.sha256(token.encode()).digest()
