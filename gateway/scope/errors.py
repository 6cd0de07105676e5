# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a location, a storage profile or the policy made for it."""

from gateway.iceberg.errors import CatalogError, InvalidLocation

__all__ = [
    "InvalidLocation",
    "InvalidStorageCredential",
    "InvalidStorageProfile",
    "PolicyTooLarge",
    "StorageTypeNotSupported",
]


class InvalidStorageProfile(CatalogError, code=400):
    """A field of a storage profile is missing, unknown, contradictory or out of its range."""


class InvalidStorageCredential(CatalogError, code=400):
    """A field of a storage credential is missing, unknown or malformed. The message never holds a value."""


class StorageTypeNotSupported(CatalogError, code=400):
    """The tag of a profile or credential is known to the protocol, but this gateway has no adapter for it."""


class PolicyTooLarge(CatalogError, code=400):
    """The session policy for a location exceeds what the store takes. It is never widened to fit."""
