# SPDX-License-Identifier: Apache-2.0
"""Read the claim `cnf`, which binds a token to a key of its client (RFC 7800).

A stolen bound token is useless without the key. The gateway accepts a bound token only with a proof of the key in each
request; `possession.py` checks the proof.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from gateway.identity.claims import Claims
from gateway.identity.errors import AuthenticationFailed, Refusal

# A SHA-256 digest in base64url without padding.
_THUMBPRINT: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


class ProofMethod(StrEnum):
    """A kind of proof. The value is the name of the field of `cnf` that has the thumbprint."""

    CERTIFICATE = "x5t#S256"
    """A client certificate (RFC 8705 section 3.1)."""
    DPOP = "jkt"
    """A signature in the header `DPoP` (RFC 9449 section 6.1)."""


class KeyBinding(msgspec.Struct, frozen=True):
    """The key to which a token is bound: the SHA-256 `thumbprint` of its certificate or of its public key."""

    method: ProofMethod
    thumbprint: bytes

    def fits(self, method: ProofMethod, thumbprint: bytes) -> bool:
        """Return True if the token is bound to this key. The comparison takes constant time."""
        return self.method is method and hmac.compare_digest(self.thumbprint, thumbprint)


def binding_of(claims: Claims, accepted: frozenset[ProofMethod]) -> KeyBinding | None:
    """Return the key to which the token is bound. Return None for a bearer token, which has no claim `cnf`.

    `accepted` are the kinds of proofs that this server checks. Raises `AuthenticationFailed` for all others, for
    several kinds in one token, and for a malformed thumbprint: such a token is never accepted as a bearer token.
    """
    if "cnf" not in claims:
        return None
    confirmation = claims["cnf"]
    if not accepted:
        raise AuthenticationFailed(
            "the token is bound to a key of its client (cnf), which is not supported; request a bearer token",
            Refusal.BINDING,
        )
    if not isinstance(confirmation, Mapping) or len(confirmation) != 1:
        raise AuthenticationFailed("the token's claim 'cnf' must be an object with exactly one member", Refusal.BINDING)
    ((member, thumbprint),) = confirmation.items()
    if member not in accepted:
        raise AuthenticationFailed(
            "the token is bound to a key of its client (cnf) in a way that is not enabled on this server; request a "
            "token that is bound in another way",
            Refusal.BINDING,
        )
    if not isinstance(thumbprint, str) or _THUMBPRINT.fullmatch(thumbprint) is None:
        raise AuthenticationFailed(
            "the thumbprint in the token's claim 'cnf' must be a SHA-256 digest in base64url", Refusal.BINDING
        )
    return KeyBinding(ProofMethod(member), base64.urlsafe_b64decode(thumbprint + "="))
