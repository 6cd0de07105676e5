# SPDX-License-Identifier: Apache-2.0
"""Errors of locations, storage profiles, storage credentials and session policies."""

from gateway.iceberg.errors import CatalogError, InvalidLocation

__all__ = [
    "InvalidLocation",
    "InvalidStorageCredential",
    "InvalidStorageProfile",
    "PolicyTooLarge",
    "StorageTypeNotSupported",
]


class InvalidStorageProfile(CatalogError, code=400):
    """A field of a storage profile is missing, unknown, contradictory or out of range."""


class InvalidStorageCredential(CatalogError, code=400):
    """A field of a storage credential is missing, unknown or malformed. The message contains no value of a field."""


class StorageTypeNotSupported(CatalogError, code=400):
    """The protocol defines the `type` of the profile or credential, but this gateway has no provider for it."""


class PolicyTooLarge(CatalogError, code=400):
    """The session policy for a location is larger than the store accepts. The gateway never widens a policy to make it
    shorter.
    """
