# SPDX-License-Identifier: Apache-2.0
"""The exception that a Java client raises for a response, by kind of operation.

The protocol's compatibility kit asserts exception classes, not status codes. The error handlers of the Java library map
code and `type` to a class, differently for each kind of operation. This module is that table in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Kind(Enum):
    """Kind of operation; each has its own error handler."""

    CONFIG = "config"
    NAMESPACE = "create, load, list or change a namespace, list tables or views"
    DROP_NAMESPACE = "drop a namespace"
    CREATE_TABLE = "create or stage a table, or finish its creation"
    TABLE = "load, drop, rename or register a table"
    COMMIT = "commit to a table"
    VIEW = "create, load, drop, rename or register a view"
    COMMIT_VIEW = "commit to a view"
    OTHER = "anything else"


class JavaException(Exception):
    """Exception of a Java client; `sent` is the message as the server sent it, without the client's prefix."""

    def __init__(self, sent: str, prefix: str = "") -> None:
        super().__init__(prefix + sent)
        self.sent = sent


class BadRequestException(JavaException):
    """400."""


class IllegalArgumentException(JavaException):
    """400 with the type of this name; the client passes the message on unchanged."""


class NotAuthorizedException(JavaException):
    """401."""


class ForbiddenException(JavaException):
    """403."""


class NoSuchWarehouseException(JavaException):
    """404 of the configuration."""


class NoSuchNamespaceException(JavaException):
    """404."""


class NoSuchTableException(JavaException):
    """404."""


class NoSuchViewException(JavaException):
    """404."""


class NotFoundException(JavaException):
    """404 for a file."""


class AlreadyExistsException(JavaException):
    """409 of a creation or rename."""


class NamespaceNotEmptyException(JavaException):
    """409 of a namespace drop."""


class CommitFailedException(JavaException):
    """409 of a commit: nothing changed; the client refreshes and retries."""


class CommitStateUnknownException(JavaException):
    """5xx of a commit: the client never deletes its files."""


class ServiceFailureException(JavaException):
    """500 of any operation but a commit."""


class ServiceUnavailableException(JavaException):
    """503 of any operation but a commit."""


class UnsupportedOperationException(JavaException):
    """501."""


class RESTException(JavaException):
    """Any other error."""


_COMMITS: Final = frozenset({Kind.COMMIT, Kind.COMMIT_VIEW})

_NOT_FOUND: Final[Mapping[Kind, type[JavaException]]] = {
    Kind.NAMESPACE: NoSuchNamespaceException,
    Kind.DROP_NAMESPACE: NoSuchNamespaceException,
    Kind.CREATE_TABLE: NoSuchNamespaceException,
    Kind.TABLE: NoSuchTableException,
    Kind.COMMIT: NoSuchTableException,
    Kind.VIEW: NoSuchViewException,
    Kind.COMMIT_VIEW: NoSuchViewException,
}

_NOT_FOUND_BY_TYPE: Final[Mapping[tuple[Kind, str], type[JavaException]]] = {
    (Kind.CONFIG, "NoSuchWarehouseException"): NoSuchWarehouseException,
    (Kind.TABLE, "NoSuchNamespaceException"): NoSuchNamespaceException,
    (Kind.TABLE, "NotFoundException"): NotFoundException,
    (Kind.VIEW, "NoSuchNamespaceException"): NoSuchNamespaceException,
}

_CONFLICT: Final[Mapping[Kind, type[JavaException]]] = {
    Kind.NAMESPACE: AlreadyExistsException,
    Kind.DROP_NAMESPACE: NamespaceNotEmptyException,
    Kind.CREATE_TABLE: AlreadyExistsException,
    Kind.TABLE: AlreadyExistsException,
    Kind.COMMIT: CommitFailedException,
    Kind.VIEW: AlreadyExistsException,
    Kind.COMMIT_VIEW: CommitFailedException,
}

_FOR_ALL: Final[Mapping[int, tuple[type[JavaException], str]]] = {
    400: (BadRequestException, "Malformed request: "),
    401: (NotAuthorizedException, "Not authorized: "),
    403: (ForbiddenException, "Forbidden: "),
    500: (ServiceFailureException, "Server error: "),
    501: (UnsupportedOperationException, ""),
    503: (ServiceUnavailableException, "Service unavailable: "),
}


def java_error(kind: Kind, code: int, type: str, message: str) -> JavaException:
    """Return the exception for an error response; `type` and `message` are those of its body."""
    if code == 404:
        found = _NOT_FOUND_BY_TYPE.get((kind, type)) or _NOT_FOUND.get(kind)
        if found is not None:
            return found(message)
    if code == 409 and kind in _CONFLICT:
        return _CONFLICT[kind](message, "Commit failed: " if kind in _COMMITS else "")
    if code in (500, 502, 503, 504) and kind in _COMMITS:
        return CommitStateUnknownException(message, f"Service failed: {code}: ")
    if code == 400 and type == "IllegalArgumentException":
        return IllegalArgumentException(message)
    if code in _FOR_ALL:
        made, prefix = _FOR_ALL[code]
        return made(message, prefix)
    return RESTException(message, f"Unable to process (code: {code}, type: {type}): ")
