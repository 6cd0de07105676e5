# SPDX-License-Identifier: Apache-2.0
"""Return the configuration of a warehouse that a catalog client receives."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cache

from gateway.access.door.permit import Permit
from gateway.access.nouns.resolved import ResolvedWarehouse
from gateway.access.operation import OPERATIONS
from gateway.access.operations.server import GetConfig
from gateway.features.kit import Kit, UseCases
from gateway.iceberg.wire import CatalogConfig
from gateway.obligations.application import hidden_operations
from gateway.storage.registry import catalog_defaults, soft_deletion_defaults

#: Endpoints that are served and deliberately not advertised. Clients already use the configuration endpoint, and get
#: the signer and the credentials endpoint of a staged table with the table. They get tokens from the identity provider;
#: engines that act for users are configured with the token endpoint.
_NOT_OFFERED = frozenset({"GetConfig", "ExchangeToken", "SignCreation", "VendStagedCredentials"})


class Configurations(UseCases):
    """The use case of `GET /v1/config`."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._base_uri = kit.base_uri
        self._page_size = kit.default_page_size
        self._idempotency_seconds = kit.idempotency_seconds

    async def get(self, permit: Permit[GetConfig]) -> CatalogConfig:
        """Return the warehouse's defaults and overrides, and the endpoints that policies do not hide from the caller.

        `uri` is overridden only if the operator configured it. A host taken from the request could redirect the
        caller's token to another server (https://github.com/apache/iceberg/issues/16470).
        """
        warehouse = permit.warehouse(permit.operation.warehouse)
        overrides = {} if self._base_uri is None else {"uri": f"{self._base_uri}/catalog"}
        return CatalogConfig(
            defaults={
                "prefix": str(warehouse.id),
                "rest-page-size": str(self._page_size),
                **_storage_defaults(warehouse),
            },
            overrides=overrides,
            endpoints=_endpoints(hidden_operations(permit.obligations)),
            idempotency_key_lifetime=(
                None if self._idempotency_seconds is None else iso_duration(self._idempotency_seconds)
            ),
        )


def _storage_defaults(warehouse: ResolvedWarehouse) -> dict[str, str]:
    profile = warehouse.storage_profile
    defaults = catalog_defaults(profile)
    return {**defaults, **soft_deletion_defaults(profile)} if warehouse.soft_deletion else dict(defaults)


def iso_duration(seconds: float) -> str:
    """Format a duration by ISO 8601, in minutes if it is a whole number of them: 1800 becomes `PT30M`."""
    whole = int(seconds)
    return f"PT{whole // 60}M" if whole % 60 == 0 else f"PT{whole}S"


def _endpoints(hidden: AbstractSet[str]) -> tuple[str, ...]:
    """Return the catalog's endpoints as the REST specification writes them. An endpoint is left out if all its
    operations are hidden.
    """
    return tuple(endpoint for endpoint, operations in _offered().items() if not operations.issubset(hidden))


@cache
def _offered() -> Mapping[str, set[str]]:
    """Return the operation names of each advertised endpoint."""
    offered: dict[str, set[str]] = {}
    for operation in OPERATIONS.values():
        method, path = operation.endpoint.split(" ", 1)
        if path.startswith("/catalog/") and operation.__name__ not in _NOT_OFFERED:
            offered.setdefault(f"{method} {path.removeprefix('/catalog')}", set()).add(operation.name())
    return offered
