# SPDX-License-Identifier: Apache-2.0
"""Find the warehouse of a request that names the warehouse, and not its id, as its `{prefix}`.

Clients use the id that `GET /v1/config` returns. Some, such as Lakekeeper's Python client, use the warehouse's name.
"""

from __future__ import annotations

from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.door.questions import placeholder_key
from gateway.access.nouns.refs import WarehouseNameRef
from gateway.access.nouns.resolved import ResolvedWarehouse
from gateway.access.ports import Resolver
from gateway.iceberg.identifiers import fold


class WarehouseNames:
    """Looks up warehouses by name on the primary database.

    Nothing is cached: after a rename, only the new name must lead to the warehouse.
    """

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    async def id_of(self, ref: WarehouseNameRef, caller: Actor) -> UUID:
        """Return the id of the warehouse with this name. If none exists, return an id that no warehouse has.

        Nothing is decided here. The door gives the same response for an absent warehouse and for one that the caller
        may not see. Each absent name has an id of its own, which all of its spellings share, as for existing
        warehouses. Otherwise two concurrent requests with one idempotency key would be a conflict only if both names
        are absent.
        """
        found = (await self._resolver.resolve((ref,), caller)).get(ref)
        if isinstance(found, ResolvedWarehouse):
            return found.id
        return UUID(placeholder_key(WarehouseNameRef(ref.project_id, fold(ref.name))).id)
