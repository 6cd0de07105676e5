# SPDX-License-Identifier: Apache-2.0
"""Errors of files and sessions of object stores.

Messages never contain text of the store, which may contain addresses, roles and keys.
"""

from gateway.iceberg.errors import CatalogError


class FileMissing(CatalogError, code=404):
    """The object does not exist."""


class FileExists(CatalogError, code=409):
    """The object exists already. Nothing was written."""


class FileTooLarge(CatalogError, code=400):
    """The object is larger than the caller's limit."""


class StorageDenied(CatalogError, code=412):
    """The store refused the warehouse's credential for this request."""


class StorageUnavailable(CatalogError, code=503):
    """The store did not respond, or its response cannot be parsed."""


class StorageEndpointRefused(CatalogError, code=412):
    """The profile's endpoint resolves to an address that the operator does not allow. Nothing was sent."""


class ShortTermCredentialError(CatalogError, code=412):
    """The store created no usable session. The message has no text of the store. `reason` is one of a fixed set."""

    def __init__(self, message: str, reason: str = "failed") -> None:
        super().__init__(message)
        self.reason = reason


class StorageSessionUnavailable(ShortTermCredentialError, code=503):
    """The store's session service did not respond in time. The request is valid and can be retried."""


class StorageAnswerMalformed(ShortTermCredentialError, code=400):
    """The session endpoint is not a session service, or its response contains no usable session."""


class StorageCheckFailed(CatalogError, code=400):
    """A required property of the store is violated or could not be verified."""


def file_missing() -> FileMissing:
    return FileMissing("The file does not exist in the storage")


def file_exists() -> FileExists:
    return FileExists("A file already exists at this path of the storage. Choose another path")


def require_size(size: int, max_bytes: int) -> None:
    """Raise FileTooLarge if the file has more than `max_bytes`."""
    if size > max_bytes:
        raise FileTooLarge(f"The file has {size} bytes; at most {max_bytes} are allowed")


def denied() -> StorageDenied:
    return StorageDenied(
        "The storage denied this request with the credential of the warehouse. Check the credential and its rights on "
        "the location"
    )


def unavailable() -> StorageUnavailable:
    return StorageUnavailable(
        "The storage did not answer, or returned an unexpected error. Check the storage profile and the store, then "
        "try again"
    )
