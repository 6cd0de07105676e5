# SPDX-License-Identifier: Apache-2.0
"""Why no temporary credential was made."""

from gateway.iceberg.errors import CatalogError


class ShortTermCredentialError(CatalogError, code=412):
    """The store made no usable session. The message never holds the store's words; `reason` is one of a closed set."""

    def __init__(self, message: str, reason: str = "failed") -> None:
        super().__init__(message)
        self.reason = reason


class StorageSessionUnavailable(ShortTermCredentialError, code=503):
    """The store's STS endpoint did not answer in time: nothing is wrong with the request, and it may be sent again."""


class StorageAnswerMalformed(ShortTermCredentialError, code=400):
    """What answers at the profile's STS endpoint is no STS, or its answer holds no usable session."""


class BelowCredentialFloor(CatalogError, code=403):
    """The allowed life is shorter than the shortest session a store makes; what remains is remote signing."""


class LocationOutsideWarehouse(CatalogError, code=403):
    """The table's location does not lie below the warehouse's base as the profile has it now."""
