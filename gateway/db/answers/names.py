# SPDX-License-Identifier: Apache-2.0
"""Read the names of objects and principals, for people who read an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey
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
