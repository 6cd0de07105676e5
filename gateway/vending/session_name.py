# SPDX-License-Identifier: Apache-2.0
"""Session names: the store's logs contain the principal of a vended credential.

A name has a readable part and a digest. Principals with the same readable part have different digests. An auditor can
compute the name of a known principal and search for it.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

__all__ = ["SessionIdentity", "session_name"]

MAX_CHARACTERS: Final = 64  # the strictest rule of all stores: 2 to 64 of [\w+=,.@-]
_DIGEST_CHARACTERS: Final = 16
_NOT_ALLOWED: Final = re.compile(r"[^A-Za-z0-9_+=,.@-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionIdentity:
    """The principal of a credential.

    `principal` is the full id (`<idp>~<subject>`), `role` the id of the assumed role, None without one. `readable` may
    be a user name. It is part of the name but not of the digest, because users can choose and change it. `context` is a
    digest of everything else on which the answer depends (groups, obligations); only the cache uses it.
    """

    principal: str
    role: str | None = None
    readable: str | None = None
    context: str = ""


def session_name(identity: SessionIdentity) -> str:
    """Return `<readable>-<16 hexadecimal characters>`: at most 64 characters that every store accepts."""
    readable = identity.readable or identity.principal.partition("~")[2] or identity.principal
    cleaned = _NOT_ALLOWED.sub("-", readable).strip("-")[: MAX_CHARACTERS - _DIGEST_CHARACTERS - 1] or "x"
    return f"{cleaned}-{principal_digest(identity.principal, identity.role)}"


def principal_digest(principal: str, role: str | None) -> str:
    """Return 16 hexadecimal characters of SHA-256 over both ids, each prefixed by its length."""
    framed = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in (principal, role or ""))
    return hashlib.sha256(framed).hexdigest()[:_DIGEST_CHARACTERS]
