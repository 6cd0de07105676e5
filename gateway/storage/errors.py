# SPDX-License-Identifier: Apache-2.0
"""Errors of files and sessions. Messages never contain the store's text: it may contain addresses, roles and keys."""

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
    """The store did not answer, or its answer cannot be parsed."""


class StorageEndpointRefused(CatalogError, code=412):
    """The profile's endpoint resolves to an address that the operator does not allow. Nothing was sent."""


class ShortTermCredentialError(CatalogError, code=412):
    """The store made no usable session. The message has no text of the store; `reason` is one of a closed set."""

    def __init__(self, message: str, reason: str = "failed") -> None:
        super().__init__(message)
        self.reason = reason


class StorageSessionUnavailable(ShortTermCredentialError, code=503):
    """The store's session service did not answer in time. The request is valid and can be retried."""


class StorageAnswerMalformed(ShortTermCredentialError, code=400):
    """The session endpoint is no session service, or its answer contains no usable session."""


class StorageCheckFailed(CatalogError, code=400):
    """A required property of the store is violated or could not be verified."""
