# SPDX-License-Identifier: Apache-2.0
"""Interfaces of storage credentials, for every provider. The `repr` of a credential shows no secret, because it appears
in tracebacks, logs and assertion messages.
"""

import hashlib
from datetime import datetime
from typing import Any, ClassVar, Protocol

__all__ = ["Credential", "Redacted", "TemporaryCredential", "digest_of"]


class Credential(Protocol):
    """A credential for a store: the stored one of a warehouse, or a temporary one."""

    provider: ClassVar[str]
    """The type of the storage profiles that the credential is for."""

    @property
    def digest(self) -> str:
        """Return an identifier of the credential for cache keys. It does not contain the credential."""
        ...


class TemporaryCredential(Credential, Protocol):
    """A credential that expires and may be confined to one location."""

    @property
    def expires_at(self) -> datetime:
        """Return the expiry as an aware datetime in UTC."""
        ...


class Redacted:
    """A mixin whose `repr` shows only the fields in `_shown`."""

    __slots__ = ()
    _shown: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shown)
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> Any:
        return ((name, getattr(self, name)) for name in self._shown)


def digest_of(*parts: str) -> str:
    """Return SHA-256 over the parts, each prefixed by its length, in hexadecimal digits."""
    framed = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in parts)
    return hashlib.sha256(framed).hexdigest()
