# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a file or a session. The store's own words stay out: they name addresses, roles and keys."""

from gateway.iceberg.errors import CatalogError


class FileMissing(CatalogError, code=404):
    """There is no such object."""


class FileExists(CatalogError, code=409):
    """There is such an object already, and nothing was written."""


class FileTooLarge(CatalogError, code=400):
    """The object has more bytes than the caller is ready to take."""


class StorageDenied(CatalogError, code=412):
    """The store refused the warehouse's credential for this request."""


class StorageUnavailable(CatalogError, code=503):
    """The store did not answer, or not in a way that can be understood."""


class StorageEndpointRefused(CatalogError, code=412):
    """The profile's endpoint leads to an address that the operator does not allow; nothing was sent to it."""


class ShortTermCredentialError(CatalogError, code=412):
    """The store made no usable session. The message never holds the store's words; `reason` is one of a closed set."""

    def __init__(self, message: str, reason: str = "failed") -> None:
        super().__init__(message)
        self.reason = reason


class StorageSessionUnavailable(ShortTermCredentialError, code=503):
    """What makes sessions did not answer in time: nothing is wrong with the request, and it may be sent again."""


class StorageAnswerMalformed(ShortTermCredentialError, code=400):
    """What answers in place of the store's session service is none, or its answer holds no usable session."""


class StorageCheckFailed(CatalogError, code=400):
    """A promise that a store has to keep was seen broken, or could not be seen kept."""
