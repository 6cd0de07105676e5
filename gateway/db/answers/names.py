# SPDX-License-Identifier: Apache-2.0
"""Read what an answer shows of objects: the names of objects and principals, and the numbers of contents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.db.engine.object_locations import joined_locations
from gateway.db.pools.rows import fetch_all
from gateway.db.schema.objects import IN_PROJECTS


class _Named(NamedTuple):
    ord: int
    name: str | None


_OF_PROJECTS: Final = ", ".join(f"{table.name}.name" for table in IN_PROJECTS.values())

# The levels of a namespace are joined with dots, as people write them. The names are for display and not for requests.
_NAMES: Final = text(
    f"""
    select a.ord, case a.type
        when 'server' then 'this server'
        when 'project' then p.name
        when 'warehouse' then w.name
        when 'namespace' then array_to_string(n.levels, '.')
        when 'table' then array_to_string(array_append(b.levels, t.name), '.')
        when 'view' then array_to_string(array_append(b.levels, t.name), '.')
        when 'generic_table' then array_to_string(array_append(b.levels, t.name), '.')
        when 'user' then u.name
        else coalesce({_OF_PROJECTS}) end as name
    from unnest(cast(:types as text[]), cast(:ids as text[])) with ordinality as a(type, id, ord)
    {joined_locations("a.type", "a.id")}
    left join namespaces b on b.id = t.namespace_id
    left join projects p on p.id = case a.type when 'project' then a.id end
    left join users u on u.id = case a.type when 'user' then a.id end
    """  # noqa: S608 - composed of names of the schema; every value is a bound parameter
)


async def names_of(connection: AsyncConnection, keys: Iterable[ObjectKey]) -> Mapping[ObjectKey, str]:
    """Return the names of those objects that exist and have one. Columns have no name here."""
    unique = list(dict.fromkeys(keys))
    values = {"types": [key.type.value for key in unique], "ids": [key.id for key in unique]}
    rows = await fetch_all(connection, _Named, _NAMES, values)
    return {unique[row.ord - 1]: row.name for row in rows if row.name is not None}


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
