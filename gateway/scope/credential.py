# SPDX-License-Identifier: Apache-2.0
"""Interfaces of storage credentials and of remote signing. The `repr` of a credential shows no secret.

A provider reads the request (`gateway/storage/<provider>/signed_request.py`), which tells what it does to which keys.
Only a request that was read completely is signed: everything that a provider does not know is refused.
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
    """Permitted file operations of a credential. `read-write` can create and overwrite files, but not delete them."""

    READ = "read"
    READ_WRITE = "read-write"
    READ_WRITE_DELETE = "read-write-delete"


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


class RequestUriMismatch(CatalogError, code=400):
    """The request is for another server, container or key than those of the table."""


class RegionMismatch(CatalogError, code=400):
    """The request is for another region than that of the storage profile."""


class ListWithoutPrefix(CatalogError, code=400):
    """A list request has no prefix."""


class InvalidListPrefix(CatalogError, code=400):
    """The prefix of a list request is not below the table's location."""


class UnsupportedListParameter(CatalogError, code=400):
    """A list request has a parameter that is not allowed, or a value of one."""


class RepeatedListParameter(CatalogError, code=400):
    """A parameter occurs more than once. Stores differ in the one they use."""


class UnsupportedSignRequest(CatalogError, code=400):
    """The request has a method, parameter, header or body that is not signed."""


class RemoteSigningDisabled(CatalogError, code=403):
    """The storage profile of the warehouse does not allow signed requests."""


class SignWithoutCredentials(CatalogError, code=412):
    """The warehouse has no key with which the gateway can sign."""


class SignedAction(StrEnum):
    """State what a request does to the files of a table."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"

    @property
    def level(self) -> AccessLevel:
        """Return the lowest access level that allows the action."""
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
    """A request that was read completely and lies inside of the table.

    `uri`: its canonical form, which the client must send. `headers`: those to sign, by their names in lower case.
    `payload`: the hash of the body in hexadecimal digits, or the text for a body that is not part of the signature.
    `keys`: for the audit record, the keys of the objects; the prefix for a list.
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
