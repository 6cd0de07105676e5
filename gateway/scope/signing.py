# SPDX-License-Identifier: Apache-2.0
"""Interfaces of remote signing: a client sends a request to a store, and the gateway signs it or refuses.

A provider reads the request (`gateway/storage/<provider>/signed_request.py`), which tells what it does to which keys.
Only a request that was read completely is signed: everything that a provider does not know is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gateway.iceberg.errors import CatalogError
from gateway.scope.level import AccessLevel

__all__ = [
    "InvalidListPrefix",
    "ListWithoutPrefix",
    "ReadRequest",
    "RegionMismatch",
    "RemoteSigningDisabled",
    "RepeatedListParameter",
    "RequestUriMismatch",
    "SignWithoutCredentials",
    "SignedAction",
    "UnsignedRequest",
    "UnsupportedListParameter",
    "UnsupportedSignRequest",
]


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
    """What a request does to the files of a table."""

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
