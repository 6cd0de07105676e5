# SPDX-License-Identifier: Apache-2.0
"""Interfaces of storage credentials and of remote signing. The `repr` of a credential shows no secret.

To sign a request, a provider parses it and returns its action and its keys. Only a completely parsed request is signed:
everything that the provider does not know is refused.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from gateway.iceberg.errors import CatalogError

__all__ = [
    "AccessLevel",
    "Credential",
    "InvalidListPrefix",
    "ListWithoutPrefix",
    "ReadRequest",
    "Redacted",
    "RegionMismatch",
    "RemoteSigningDisabled",
    "RepeatedListParameter",
    "RequestUriMismatch",
    "SignWithoutCredentials",
    "SignedAction",
    "TemporaryCredential",
    "UnsignedRequest",
    "UnsupportedListParameter",
    "UnsupportedSignRequest",
    "digest_of",
]


class AccessLevel(StrEnum):
    """File operations that a credential permits. `read-write` can create and overwrite files, but not delete them."""

    READ = "read"
    READ_WRITE = "read-write"
    READ_WRITE_DELETE = "read-write-delete"


class Credential(Protocol):
    """A credential for a store: the stored credential of a warehouse, or a temporary one."""

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
    """Return the SHA-256 of the parts, each prefixed by its length, in hexadecimal digits."""
    framed = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in parts)
    return hashlib.sha256(framed).hexdigest()


class RequestUriMismatch(CatalogError, code=400):
    """The request is for a server, container or key that does not belong to the table."""


class RegionMismatch(CatalogError, code=400):
    """The request is for a region other than that of the storage profile."""


class ListWithoutPrefix(CatalogError, code=400):
    """A list request has no prefix."""


class InvalidListPrefix(CatalogError, code=400):
    """The prefix of a list request is not below the table's location."""


class UnsupportedListParameter(CatalogError, code=400):
    """A list request has a parameter, or a value of a parameter, that is not allowed."""


class RepeatedListParameter(CatalogError, code=400):
    """A parameter occurs more than once. Stores differ in which occurrence they use."""


class UnsupportedSignRequest(CatalogError, code=400):
    """The request has a method, parameter, header or body that the gateway does not sign."""


class RemoteSigningDisabled(CatalogError, code=403):
    """The storage profile of the warehouse does not allow signed requests."""


class SignWithoutCredentials(CatalogError, code=412):
    """The warehouse has no key with which the gateway can sign."""


class SignedAction(StrEnum):
    """The effect of a request on the files of a table."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"

    @property
    def level(self) -> AccessLevel:
        """Return the lowest access level that permits the action."""
        match self:
            case SignedAction.READ:
                return AccessLevel.READ
            case SignedAction.WRITE:
                return AccessLevel.READ_WRITE
            case SignedAction.DELETE:
                return AccessLevel.READ_WRITE_DELETE


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsignedRequest:
    """A request to sign, as the client sent it.

    `headers`: pairs of name and value; a name may occur several times. `provider`: the scheme of the store's locations;
    None if the client does not name it.
    """

    region: str
    method: str
    uri: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    provider: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """A request that was parsed completely and concerns only the table.

    `uri`: its canonical form, which the client must send. `headers`: the headers to sign, by their names in lower case.
    `payload`: the hash of the body in hexadecimal digits, or the text that stands for an unsigned body. `keys`: the
    keys of the objects for the audit record; for a list, the prefix.
    """

    action: SignedAction
    method: str
    uri: str
    headers: Mapping[str, str]
    payload: str
    keys: tuple[str, ...]
    unsigned_headers: Mapping[str, str]
    """Headers of the client that are not signed, by their names in lower case: the answer contains all headers."""
    checks_body: bool = False
    """True if the keys are in the body, so that the store must compare the body with its signed hash."""
