# SPDX-License-Identifier: Apache-2.0
"""Find the warehouse that a request names as its `{prefix}`.

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
    """Reads the ids of warehouses by their names, on the primary database.

    Nothing is cached: after a rename, the old name must not reach the warehouse, and the new one must.
    """

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    async def id_of(self, ref: WarehouseNameRef, caller: Actor) -> UUID:
        """Return the id of a warehouse; an id that no warehouse has if there is none of this name.

        This decides nothing. The door answers the same for a warehouse that is absent and for one that the caller may
        not see. Each absent name has an id of its own, and its spellings share it, as those of a warehouse do:
        otherwise two concurrent requests with one idempotency key would be a conflict only if both names are absent.
        """
        found = (await self._resolver.resolve((ref,), caller)).get(ref)
        if isinstance(found, ResolvedWarehouse):
            return found.id
        return UUID(placeholder_key(WarehouseNameRef(ref.project_id, fold(ref.name))).id)
