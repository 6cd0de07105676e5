# SPDX-License-Identifier: Apache-2.0
"""Which exception a Java client raises for an answer, by the kind of operation that was asked.

The protocol's compatibility kit asserts exception classes, not status codes: the error handlers of the Java library
turn code and `type` into a class, differently for each kind of operation. This is that table, without any Java.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Kind(Enum):
    """What was asked; each has an error handler of its own."""

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
    """What a Java client raises; `sent` is the message as the server sent it, without the client's prefix."""

    def __init__(self, sent: str, prefix: str = "") -> None:
        super().__init__(prefix + sent)
        self.sent = sent


class BadRequestException(JavaException):
    """400."""


class IllegalArgumentException(JavaException):
    """400 with the type of this name: the message is passed on as it is."""


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
    """404 about a file."""


class AlreadyExistsException(JavaException):
    """409 where something is made or named."""


class NamespaceNotEmptyException(JavaException):
    """409 of dropping a namespace."""


class CommitFailedException(JavaException):
    """409 of a commit: nothing happened, the client refreshes and tries again."""


class CommitStateUnknownException(JavaException):
    """5xx of a commit: the client keeps its files for ever."""


class ServiceFailureException(JavaException):
    """500 of anything but a commit."""


class ServiceUnavailableException(JavaException):
    """503 of anything but a commit."""


class UnsupportedOperationException(JavaException):
    """501."""


class RESTException(JavaException):
    """Everything else."""


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
    """The exception for an error answer; `type` and `message` are those of its body."""
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
