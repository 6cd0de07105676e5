# SPDX-License-Identifier: Apache-2.0
"""Read all live grants and the positions of their objects, to compare two relationship models on them.

The relations that the gateway derives from grants (`traverse`, `read_columns`) are included, as in `desired_tuples`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.decisions.recorded_grants import Grant, Place, World
from gateway.access.nouns.refs import ObjectKey, ObjectType, table_of
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Database
from gateway.db.pools.rows import fetch_all
from gateway.db.schema.objects import IN_PROJECTS
from gateway.db.tuples.desired_tuples import following

_GRANTS: Final = text(
    """
    select g.principal_type, g.principal_id, g.privilege, g.object_type, g.object_id,
        bool_and(g.expires_at is not null) as expires
    from grants g
    where (g.expires_at is null or g.expires_at > now())
        and not (g.principal_type = 'user' and exists (
            select 1 from scim_users u where u.user_id = g.principal_id and not u.active))
    group by 1, 2, 3, 4, 5
    """
)
_CONTAINERS: Final = text(
    """
    select 'server' as type, id::text as id, null as above_type, null as above_id, 'server' as name, false as flagged
        from server
    union all select 'project', p.id, 'server', s.id::text, p.name, false from projects p cross join server s
    union all select 'warehouse', id::text, 'project', project_id, name, managed_access from warehouses
    union all select 'namespace', id::text, case when parent_id is null then 'warehouse' else 'namespace' end,
        coalesce(parent_id, warehouse_id)::text, array_to_string(levels, '.'), managed_access from namespaces
    """
)
_OF_PROJECTS: Final = text(
    " union all ".join(
        f"select '{type.value}' as type, id::text as id, 'project' as above_type, project_id as above_id, name, "  # noqa: S608 - names of the schema
        f"false as flagged from {table.name}"
        for type, table in IN_PROJECTS.items()
    )
)
_GRANTED_TABLES: Final = text(
    """
    select t.kind as type, t.id::text as id, 'namespace' as above_type, t.namespace_id::text as above_id, t.name,
        false as flagged
    from tables t where exists (
        select 1 from grants g where g.object_id = t.id::text and g.object_type in ('table', 'view', 'generic_table')
        union all
        select 1 from grants g where g.object_type = 'column' and split_part(g.object_id, '.', 1) = t.id::text)
    """
)


class _Granted(NamedTuple):
    principal_type: str
    principal_id: str
    privilege: str
    object_type: str
    object_id: str
    expires: bool


class _Placed(NamedTuple):
    type: str
    id: str
    above_type: str | None
    above_id: str | None
    name: str
    flagged: bool


async def read_world(database: Database) -> World:
    """Return every live grant, and the position of every object that has a grant or contains one.

    All rows are of one moment. Raises DatabaseUnavailable.
    """
    async with database.transaction() as connection:
        await connection.execute(text("set transaction isolation level repeatable read, read only"))
        places = await _places(connection)
        granted = await fetch_all(connection, _Granted, _GRANTS)
    return World(_with_derived(granted, places), places)


async def _places(connection: AsyncConnection) -> dict[ObjectKey, Place]:
    places: dict[ObjectKey, Place] = {}
    for statement in (_CONTAINERS, _OF_PROJECTS, _GRANTED_TABLES):
        for row in await fetch_all(connection, _Placed, statement):
            above = None
            if row.above_type is not None and row.above_id is not None:
                above = ObjectKey(ObjectType(row.above_type), row.above_id)
            places[ObjectKey(ObjectType(row.type), row.id)] = Place(above, row.name, row.flagged)
    return places


def _with_derived(granted: list[_Granted], places: dict[ObjectKey, Place]) -> list[Grant]:
    """Return the grants and the relations that they require, and add the columns among their objects to `places`."""
    found: dict[tuple[Principal, str, ObjectKey], bool] = {}
    for row in granted:
        on = ObjectKey(ObjectType(row.object_type), row.object_id)
        principal = Principal(PrincipalType(row.principal_type), row.principal_id)
        if on.type is ObjectType.COLUMN and table_of(on) in places:
            places[on] = Place(table_of(on), on.id.partition(".")[2])
        if on not in places:
            continue
        for relation, object in _required(principal, row.privilege, on, places):
            key = principal, relation, object
            found[key] = found.get(key, True) and row.expires
    return [Grant(principal, relation, object, expires) for (principal, relation, object), expires in found.items()]


def _required(
    principal: Principal, privilege: str, on: ObjectKey, places: dict[ObjectKey, Place]
) -> Iterator[tuple[str, ObjectKey]]:
    above: list[ObjectKey] = []
    place = places[on]
    while place.above is not None:
        above.append(place.above)
        place = places[place.above]
    for key in following(TupleKey(principal, privilege, on), above):
        if key.subject == principal:
            yield key.relation, key.object
