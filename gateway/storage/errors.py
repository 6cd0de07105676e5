# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a file. The store's own words stay out: they name addresses, ARNs and keys."""

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
