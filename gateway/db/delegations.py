# SPDX-License-Identifier: Apache-2.0
"""List the recorded grants of `delegate`: those of an engine. OpenFGA then confirms each of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.list_visibility import Holders
from gateway.access.privileges import Privilege
from gateway.db.rows import AnyRow

_PLACES = text(
    """
    select g.object_type, g.object_id, g.principal_type, g.expires_at, g.acts_for,
        coalesce(w.project_id, g.object_id) as project_id
    from grants g left join warehouses w on w.id = case g.object_type when 'warehouse' then g.object_id::uuid end
    where (g.principal_type = 'user' and g.principal_id = cast(:user as text)
           or g.principal_type = 'role' and g.principal_id = any(cast(:roles as text[])))
        and g.privilege = :delegate and (g.expires_at is null or g.expires_at > clock_timestamp())
    order by g.object_type, g.object_id, g.id limit :limit
    """
)


async def grants_of_engine(connection: AsyncConnection, engine: Holders, *, limit: int) -> Sequence[AnyRow]:
    """Return the live grants of `delegate` to the engine or to one of its roles: on projects, then on warehouses.

    `project_id` of a row is the project of the object.
    """
    values = {"user": engine.user, "roles": list(engine.roles), "delegate": Privilege.DELEGATE.value, "limit": limit}
    return (await connection.execute(_PLACES, values)).all()
