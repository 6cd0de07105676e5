# SPDX-License-Identifier: Apache-2.0
"""Read what an answer shows of objects: the names of objects and principals, and the numbers of contents."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import TABULARS, ObjectKey, ObjectType
from gateway.access.operations.answers import Opening
from gateway.db.engine.object_locations import joined_locations
from gateway.db.pools.rows import fetch_all
from gateway.db.schema.objects import IN_PROJECTS

#: The types of objects on which a grant opens nothing else. A grant on a role or a data policy may open other objects.
_WITHOUT_CONTENTS: Final = {*TABULARS, ObjectType.TAG}

#: The types of objects whose contents can be counted.
CONTAINERS: Final = frozenset({ObjectType.PROJECT, ObjectType.WAREHOUSE, ObjectType.NAMESPACE})


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
    ord: int
    type: str
    number: int


#: The namespaces in each of several containers: `ord` is the number of the container, from 1.
NAMESPACES_WITHIN: Final = """
    select c.ord, n.id, n.path_key, n.warehouse_id, n.ancestors
    from unnest(cast(:types as text[]), cast(:ids as text[])) with ordinality as c(type, id, ord)
    join warehouses w on case c.type when 'server' then true when 'project' then w.project_id = c.id
        when 'warehouse' then w.id::text = c.id else c.type = 'namespace' end
    join namespaces n on n.warehouse_id = w.id and (c.type <> 'namespace' or n.id::text = c.id
        or c.id = any(cast(n.ancestors as text[])))
"""

# The containers of an object contain one another, so each table is read once.
_INSIDE: Final = text(
    f"""
    with spaces as materialized ({NAMESPACES_WITHIN}),
    counted as materialized (
        select t.namespace_id, t.kind, count(*) as number from tables t
        where t.namespace_id in (select id from spaces) and t.deleted_at is null and t.staged_by is null
        group by t.namespace_id, t.kind)
    select s.ord, c.kind as type, cast(sum(c.number) as bigint) as number
    from spaces s join counted c on c.namespace_id = s.id group by s.ord, c.kind order by s.ord, c.kind
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)


def container_values(containers: Sequence[ObjectKey]) -> dict[str, list[str]]:
    """Return the parameters of `NAMESPACES_WITHIN`."""
    return {"types": [key.type.value for key in containers], "ids": [key.id for key in containers]}


async def count_inside(
    connection: AsyncConnection, containers: Collection[ObjectKey]
) -> Mapping[ObjectKey, Mapping[str, int]]:
    """Return the numbers of live tables, views and generic tables in each container, by type.

    Types without any are left out.
    """
    some = list(containers)
    found: dict[ObjectKey, dict[str, int]] = {key: {} for key in some}
    for row in await fetch_all(connection, _Count, _INSIDE, container_values(some)):
        found[some[row.ord - 1]][row.type] = row.number
    return found


async def count_openings(
    connection: AsyncConnection, objects: Iterable[ObjectKey], counted: Collection[ObjectKey]
) -> dict[ObjectKey, list[Opening]]:
    """Return what grants on objects open too: nothing for tables, views and tags, the contents for `counted`
    containers.
    """
    found: dict[ObjectKey, list[Opening]] = {key: [] for key in objects if key.type in _WITHOUT_CONTENTS}
    for container, inside in (await count_inside(connection, counted)).items():
        found[container] = [Opening(type=type, count=count) for type, count in inside.items()]
    return found
