# SPDX-License-Identifier: Apache-2.0
"""Why no temporary credential was made."""

from gateway.iceberg.errors import CatalogError


class BelowCredentialFloor(CatalogError, code=403):
    """The allowed life is shorter than the shortest session of the store."""


class LocationOutsideWarehouse(CatalogError, code=403):
    """The table's location does not lie below the warehouse's base as the profile has it now."""
