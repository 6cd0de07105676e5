# SPDX-License-Identifier: Apache-2.0
"""Errors of credential vending."""

from gateway.iceberg.errors import CatalogError


class BelowCredentialFloor(CatalogError, code=403):
    """The allowed lifetime is shorter than the store's shortest session."""


class LocationOutsideWarehouse(CatalogError, code=403):
    """The table's location is not below the current base location of the warehouse."""
