# SPDX-License-Identifier: Apache-2.0
"""Find the objects on which a principal holds more than on their containers: those of its grants, and those above them.

Grants of the principal and of the roles that contain it count. The objects of a subtree are read in pages, the highest
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.privileges import TRAVERSE_REASONS
from gateway.access.nouns.refs import TABULARS, ObjectKey, ObjectType
from gateway.access.tuples import READ_COLUMNS, Principal, PrincipalType
from gateway.db.answers.path_grants import CLOSURE, LIVE
from gateway.db.engine.object_locations import joined_locations, project_of
from gateway.db.pools.rows import fetch_all
from gateway.db.schema.objects import IN_PROJECTS
from gateway.db.tuples.desired_tuples import TRAVERSE

#: The order of the types in pages. Nested namespaces follow those that contain them.
_RANKS: Final = {
    ObjectType.SERVER: 0,
    ObjectType.PROJECT: 1,
    ObjectType.ROLE: 2,
    ObjectType.DATA_POLICY: 3,
    ObjectType.TAG: 4,
    ObjectType.WAREHOUSE: 5,
    ObjectType.NAMESPACE: 6,
    ObjectType.GENERIC_TABLE: 1000,
    ObjectType.TABLE: 1001,
    ObjectType.VIEW: 1002,
    ObjectType.COLUMN: 1003,
}
_WHENS: Final = " ".join(f"when '{type.value}' then {rank}" for type, rank in _RANKS.items())
_RANK: Final = f"case o.type {_WHENS} end"
_REASONS: Final = ", ".join(f"'{each.value}'" for each in sorted(TRAVERSE_REASONS))


class Place(NamedTuple):
    """The place of an object in the order of pages."""

    rank: int
    id: str


class HeldObject(NamedTuple):
    """An object, with its place in the order of pages."""

    type: str
    id: str
    rank: int

    @property
    def key(self) -> ObjectKey:
        """The object."""
        return ObjectKey(ObjectType(self.type), self.id)

    @property
    def place(self) -> Place:
        """The place of the object."""
        return Place(self.rank, self.id)


def _located(source: str) -> str:
    """Return the query for the objects of `source` with their locations.

    The namespace is that of a table, or the object itself. Objects that are deleted meanwhile have no location.
    """
    return f"""
        select h.*, t.id as table_id, s.id as namespace_id, s.ancestors, w.id as warehouse_id,
            {project_of("h.type", "h.id")} as project_id
        from {source} h {joined_locations("h.type", "h.id")}
        left join namespaces s on s.id = coalesce(n.id, t.namespace_id)
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter


# The containers of many objects are few, so `places` has each combination of them once.
_LEVELS: Final = """
    cross join lateral (values
        ('project', case when l.warehouse_id is not null then l.project_id end),
        ('warehouse', case when l.type <> 'warehouse' then l.warehouse_id::text end),
        ('namespace', case when l.is_tabular then l.namespace_id::text end),
        ('table', l.table_of_column::text)) o(type, id)
    where o.id is not null and o.type <> l.type
"""
_ABOVE: Final = f"""
    select o.type, o.id from places l {_LEVELS}
    union
    select 'namespace', a.id::text from places l cross join lateral unnest(l.ancestors) a(id)
"""  # noqa: S608 - composed of constants of this module; every value is a bound parameter
_PLACES: Final = """
    l.type, l.table_id is not null as is_tabular, case l.type when 'column' then l.table_id end as table_of_column,
    l.namespace_id, l.ancestors, l.warehouse_id, l.project_id
"""

_WITHIN: Final = """
    case cast(:root_type as text)
        when 'server' then true
        when 'project' then o.project_id = cast(:root_id as text)
        when 'warehouse' then o.warehouse_id::text = cast(:root_id as text)
        when 'namespace' then o.namespace_id::text = cast(:root_id as text)
            or cast(:root_id as text) = any(cast(o.ancestors as text[]))
        when 'table' then o.type = 'column' and split_part(o.id, '.', 1) = cast(:root_id as text)
        else false end
"""

_OBJECTS: Final = text(
    f"""
    {CLOSURE},
    held as materialized (
        select g.object_type as type, g.object_id as id,
            bool_or(g.privilege in ({_REASONS}) or g.object_type = 'column') as reason
        from closure c join grants g on g.principal_type = c.type and g.principal_id = c.id
        where {LIVE} group by 1, 2),
    located as materialized ({_located("held")}),
    places as materialized (select distinct {_PLACES} from located l where l.reason),
    further as materialized (
        {_ABOVE}
        union select c.type, c.id from closure c where c.type = 'role'
        union select 'namespace', n.id::text from namespaces n where cast(:flagged as boolean) and n.managed_access),
    placed as (
        select o.type, o.id,
            {_RANK} + coalesce(case o.type when 'namespace' then cardinality(o.ancestors) end, 0) as rank
        from (
            select type, id, table_id, namespace_id, ancestors, warehouse_id, project_id from located
            union all
            select type, id, table_id, namespace_id, ancestors, warehouse_id, project_id
            from ({_located("further")}) f) o
        where {_WITHIN}
            and case o.type when 'server' then true when 'project' then exists (
                    select 1 from projects x where x.id = o.id)
                when 'column' then o.table_id is not null
                else o.project_id is not null end
        union
        select o.type, o.id, {_RANK} + cast(:root_depth as int)
        from (select cast(:root_type as text) as type, cast(:root_id as text) as id) o)
    select o.type, o.id, o.rank from placed o
    where cast(:after_rank as int) is null or (o.rank, o.id) > (cast(:after_rank as int), cast(:after_id as text))
    order by o.rank, o.id limit :limit
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)


async def held_objects(
    connection: AsyncConnection,
    principals: Sequence[Principal],
    root: ObjectKey,
    depth: int,
    *,
    now: datetime,
    flagged: bool,
    after: Place | None,
    limit: int,
) -> list[HeldObject]:
    """Return the subtree's root and the objects in it on which the principals, or roles that contain them, hold grants,
    with all containers that such grants make visible.

    With `flagged`, namespaces with managed access are included. The objects follow the place `after`. `depth` is the
    number of namespaces above the root, if it is one.
    """
    values: dict[str, Any] = {
        **closure_values(principals, now),
        "root_type": root.type.value,
        "root_id": root.id,
        "root_depth": depth,
        "flagged": flagged,
        "after_rank": None if after is None else after.rank,
        "after_id": None if after is None else after.id,
        "limit": limit,
    }
    return await fetch_all(connection, HeldObject, _OBJECTS, values)


def closure_values(principals: Sequence[Principal], now: datetime) -> dict[str, Any]:
    """Return the parameters of the closure of principals."""
    return {
        "types": [each.type.value for each in principals],
        "ids": [each.id for each in principals],
        "now": now,
    }


class DerivedTuple(NamedTuple):
    """The grants of one holder below a container: their latest expiry; None if one of them does not expire."""

    principal_type: str
    principal_id: str
    object_type: str
    object_id: str
    until: datetime | None

    @property
    def object(self) -> ObjectKey:
        """The container."""
        return ObjectKey(ObjectType(self.object_type), self.object_id)

    @property
    def relation(self) -> str:
        """The relation of the tuple."""
        return READ_COLUMNS if self.object_type == ObjectType.TABLE else TRAVERSE

    @property
    def principal(self) -> Principal:
        """The holder."""
        return Principal(PrincipalType(self.principal_type), self.principal_id)


# The expiry of several grants is the latest one, null if one of them has none.
_UNTIL: Final = "case when bool_and({0} is not null) then max({0}) end as until"

_DERIVED: Final = text(
    f"""
    {CLOSURE},
    held as materialized (
        select g.object_type as type, g.object_id as id, g.principal_type, g.principal_id,
            {_UNTIL.format("g.expires_at")}
        from closure c join grants g on g.principal_type = c.type and g.principal_id = c.id
        where {LIVE} and g.privilege in ({_REASONS}) group by 1, 2, 3, 4),
    located as materialized ({_located("held")}),
    places as materialized (
        select {_PLACES}, l.principal_type, l.principal_id, {_UNTIL.format("l.until")}
        from located l group by 1, 2, 3, 4, 5, 6, 7, 8, 9),
    above as (
        select o.type, o.id, l.principal_type, l.principal_id, l.until from places l {_LEVELS}
        union all
        select 'namespace', a.id::text, l.principal_type, l.principal_id, l.until
        from places l cross join lateral unnest(l.ancestors) a(id))
    select a.principal_type, a.principal_id, a.type as object_type, a.id as object_id, {_UNTIL.format("a.until")}
    from above a
    join unnest(cast(:container_types as text[]), cast(:container_ids as text[])) as c(type, id)
        on c.type = a.type and c.id = a.id
    group by 1, 2, 3, 4
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)


async def derived_tuples(
    connection: AsyncConnection, principals: Sequence[Principal], containers: Sequence[ObjectKey], *, now: datetime
) -> list[DerivedTuple]:
    """Return the tuples on containers and tables that follow from grants on their contents.

    Holders are the principals and the roles that contain them.
    """
    values = {
        **closure_values(principals, now),
        "container_types": [key.type.value for key in containers],
        "container_ids": [key.id for key in containers],
    }
    return await fetch_all(connection, DerivedTuple, _DERIVED, values)


class FoundObject(NamedTuple):
    """An object: its id, its warehouse, and its name. An object outside of warehouses has no warehouse."""

    id: str
    warehouse_id: UUID | None
    name: str


# The objects of the grants of the principals and of their roles, with these roles, each with its location.
_PLACED: Final = f"""
    {CLOSURE},
    held as materialized (
        select g.object_type as type, g.object_id as id from closure c
        join grants g on g.principal_type = c.type and g.principal_id = c.id where {LIVE}
        union select c.type, c.id from closure c where c.type = 'role'),
    located as materialized ({_located("held")})
"""  # noqa: S608 - composed of constants of this module; every value is a bound parameter

_BY_SERVER: Final = "exists (select 1 from located l where l.type = 'server')"
_BY_CONTAINERS: Final = f"""
    {_BY_SERVER} or w.project_id in (select l.project_id from located l where l.type = 'project')
    or w.id in (select l.warehouse_id from located l where l.type = 'warehouse')
    or n.id in (select l.namespace_id from located l where l.type = 'namespace')
    or n.ancestors && array(select l.namespace_id from located l where l.type = 'namespace')
"""  # noqa: S608 - as above
_PAGE: Final = "and o.id::text > cast(:after as text) order by o.id::text limit :limit"

_TABULAR_OBJECTS: Final = f"""
    select o.id::text as id, o.warehouse_id, o.name from tables o
    join namespaces n on n.id = o.namespace_id join warehouses w on w.id = o.warehouse_id
    where o.kind = :type and o.staged_by is null and o.deleted_at is null
        and (cast(:within as uuid) is null or o.namespace_id = cast(:within as uuid))
        and ({_BY_CONTAINERS} or o.id in (select l.table_id from located l where l.table_id is not null)) {_PAGE}
"""  # noqa: S608 - as above

_OTHER_OBJECTS: Final = {
    ObjectType.NAMESPACE: f"""
        select o.id::text as id, o.warehouse_id, array_to_string(o.levels, '.') as name from namespaces o
        join namespaces n on n.id = o.id join warehouses w on w.id = o.warehouse_id
        where ({_BY_CONTAINERS} or o.id in (
            select a.id from located l cross join lateral unnest(l.ancestors || l.namespace_id) as a(id))) {_PAGE}
    """,  # noqa: S608 - as above
    ObjectType.WAREHOUSE: f"""
        select o.id::text as id, o.id as warehouse_id, o.name from warehouses o
        where ({_BY_SERVER} or o.project_id in (select l.project_id from located l where l.type = 'project')
            or o.id in (select l.warehouse_id from located l)) {_PAGE}
    """,  # noqa: S608 - as above
    ObjectType.PROJECT: f"""
        select o.id::text as id, cast(null as uuid) as warehouse_id, o.name from projects o
        where ({_BY_SERVER} or o.id in (select l.project_id from located l)) {_PAGE}
    """,  # noqa: S608 - as above
    **{
        type: f"""
        select o.id::text as id, cast(null as uuid) as warehouse_id, o.name from {table.name} o
        where ({_BY_SERVER} or o.project_id in (select l.project_id from located l)) {_PAGE}
    """  # noqa: S608 - as above
        for type, table in IN_PROJECTS.items()
    },
}
_FOUND: Final = {
    type: text(f"{_PLACED} {statement}")
    for type, statement in (_OTHER_OBJECTS | dict.fromkeys(TABULARS, _TABULAR_OBJECTS)).items()
}


async def objects_within(
    connection: AsyncConnection,
    principals: Sequence[Principal],
    type: ObjectType,
    *,
    now: datetime,
    within: UUID | None,
    after: str,
    limit: int,
) -> list[FoundObject]:
    """Return the objects of a type on which the principals can have a right, ordered by id, after the id `after`.

    They are the objects of the grants that count in `held_objects`, everything in them, and their containers. With
    `within`, only tabular objects directly in this namespace are returned. Raises KeyError for other types.
    """
    values: dict[str, object] = {**closure_values(principals, now), "after": after, "limit": limit}
    if type in TABULARS:
        values |= {"type": type.value, "within": within}
    return await fetch_all(connection, FoundObject, _FOUND[type], values)
