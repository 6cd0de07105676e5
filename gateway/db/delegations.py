# SPDX-License-Identifier: Apache-2.0
"""List the objects on which engines hold `delegate`, by the grants in PostgreSQL. OpenFGA then confirms each of
them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.list_visibility import Holders
from gateway.access.privileges import Privilege
from gateway.access.refs import ObjectKey, ObjectType
from gateway.db.list_candidates import HELD

_PLACES = text(f"{HELD} and g.privilege = :delegate order by g.object_type, g.object_id limit :limit")


async def scopes_of_engine(connection: AsyncConnection, engine: Holders, *, limit: int) -> Sequence[ObjectKey]:
    """Return the projects, then the warehouses, on which the engine or one of its roles holds `delegate`."""
    values = {"user": engine.user, "roles": list(engine.roles), "delegate": Privilege.DELEGATE.value, "limit": limit}
    rows = await connection.execute(_PLACES, values)
    return [ObjectKey(ObjectType(row.object_type), row.object_id) for row in rows]
