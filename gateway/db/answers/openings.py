# SPDX-License-Identifier: Apache-2.0
"""Count the objects in a container, which a grant on the container would open too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.db.pools.rows import fetch_all


class _Count(NamedTuple):
    type: str
    number: int


_INSIDE: Final = text(
    """
    with spaces as materialized (
        select n.id from namespaces n join warehouses w on w.id = n.warehouse_id where case cast(:type as text)
            when 'project' then w.project_id = :id
            when 'warehouse' then w.id::text = :id
            when 'namespace' then n.id::text = :id or cast(:uuid as uuid) = any(n.ancestors)
            else false end)
    select t.kind as type, count(*) as number from tables t join spaces s on s.id = t.namespace_id
    where t.deleted_at is null and t.staged_by is null group by t.kind order by t.kind
    """
)


async def count_inside(connection: AsyncConnection, container: ObjectKey) -> Mapping[str, int]:
    """Return the numbers of live tables, views and generic tables in a container, by type. Types without any are left
    out.
    """
    uuid = container.id if container.type is ObjectType.NAMESPACE else None
    values = {"type": container.type.value, "id": container.id, "uuid": uuid}
    return {row.type: row.number for row in await fetch_all(connection, _Count, _INSIDE, values)}
