# SPDX-License-Identifier: Apache-2.0
"""Compute the relationship tuples that the rows require. Deliveries make OpenFGA's tuples equal to them.

There are five kinds, each derived from rows without counters:

- Edges of the hierarchy come from the objects' own rows.
- The flag of managed access comes from the rows of warehouses and namespaces.
- Privileges come from live grants.
- `traverse`, which makes containers visible, comes from live grants on objects below.
- `read_columns` comes from live grants on columns of a table. A column has no row: its edge is required while a grant
  on it exists.

For a deactivated user, no tuples of grants are required.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.privileges import TRAVERSE_REASONS
from gateway.access.nouns.refs import ObjectKey, ObjectType, table_of
from gateway.access.tuples import ALL_USERS, MANAGED_ACCESS, READ_COLUMNS, Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Database
from gateway.db.schema.objects import IN_PROJECTS
from gateway.db.tuples.outbox import STRUCTURAL, key_arrays

TRAVERSE = "traverse"


async def desired_tuples(connection: AsyncConnection, keys: Sequence[TupleKey]) -> dict[TupleKey, datetime | None]:
    """Return those of the `keys` whose tuple must exist, each with its expiry.

    The expiry is the latest one of the tuple's live rows, None if a row has no expiry. One statement reads all kinds.
    """
    if not keys:
        return {}
    parts, values = desired_parts(keys)
    rows = await connection.execute(_statement(parts), values)
    return {keys[row.ord - 1]: row.until for row in rows}


@dataclass(frozen=True, slots=True)
class DesiredParts:
    """Parts of a statement that computes desired tuples.

    They are common table expressions, the first of which is `asked` with the keys, and a select of (ord, until).
    """

    tables: str
    select: str


def desired_parts(keys: Sequence[TupleKey]) -> tuple[DesiredParts, dict[str, Any]]:
    """Return the parts of a statement for these keys, and its parameters."""
    kinds = [_kind(key) for key in keys]
    return _parts(frozenset(kinds)), {"kinds": kinds, **key_arrays(keys)}


class RecordedGrants:
    """Implements the port of recorded grants (`gateway.access.ports.GrantRows`) on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def recorded(self, keys: Sequence[TupleKey]) -> Set[TupleKey]:
        """Return those of the `keys` that live rows require, read on the primary. Raises DatabaseUnavailable."""
        async with self._database.read() as connection:
            return frozenset(await desired_tuples(connection, keys))


def _kind(key: TupleKey) -> str:
    """Return the key in `_STATEMENTS` of the statement that computes this tuple key."""
    if key.relation in STRUCTURAL:
        return "edges"
    return _DERIVED.get(key.relation, "granted")


@cache
def _parts(kinds: frozenset[str]) -> DesiredParts:
    """Return the parts for keys of these kinds.

    The part of a kind reads only keys of that kind, so its casts to UUID succeed.
    """
    ordered = sorted(kinds)
    own = ", ".join(
        f"{kind} as materialized (select * from asked where kind = '{kind}')"  # noqa: S608 - a key of `_STATEMENTS`
        for kind in ordered
    )
    parts = " union all ".join(f"({_STATEMENTS[kind]})" for kind in ordered)
    return DesiredParts(f"asked as materialized ({_KEYS_OF_TYPES}), {own}", parts)


@cache
def _statement(parts: DesiredParts) -> TextClause:
    return text(f"with {parts.tables} {parts.select}")


_DERIVED = {TRAVERSE: "derived", READ_COLUMNS: "reading", MANAGED_ACCESS: "flagged"}

_KEYS_OF_TYPES = """
    select * from unnest(cast(:kinds as text[]), cast(:subject_types as text[]), cast(:subject_ids as text[]),
                         cast(:relations as text[]), cast(:object_types as text[]), cast(:object_ids as text[]))
         with ordinality as a(kind, subject_type, subject_id, relation, object_type, object_id, ord)
"""

# Grants of a user that the directory deactivated are kept, but have no effect.
_ACTIVE = """
    not (a.subject_type = 'user' and exists (
        select 1 from scim_users u where u.user_id = a.subject_id and not u.active))
"""

_OF_PROJECTS = " ".join(
    f"when '{type.value}' then a.relation = 'project' and a.subject_type = 'project' "  # noqa: S608 - names of the schema
    f"and exists (select 1 from {table.name} o where o.id = a.object_id::uuid and o.project_id = a.subject_id)"
    for type, table in IN_PROJECTS.items()
)

_EDGES = f"""
    select a.ord, null::timestamptz as until from edges a where case a.object_type
        when 'project' then a.relation = 'server' and a.subject_type = 'server'
            and exists (select 1 from projects p where p.id = a.object_id)
            and exists (select 1 from server s where s.id = a.subject_id::uuid)
        when 'warehouse' then a.relation = 'project' and a.subject_type = 'project'
            and exists (select 1 from warehouses w where w.id = a.object_id::uuid and w.project_id = a.subject_id)
        {_OF_PROJECTS}
        when 'namespace' then a.relation = 'parent' and exists (
            select 1 from namespaces n where n.id = a.object_id::uuid and case a.subject_type
                when 'warehouse' then n.parent_id is null and n.warehouse_id = a.subject_id::uuid
                when 'namespace' then n.parent_id = a.subject_id::uuid
                else false end)
        when 'table' then a.relation = 'parent' and a.subject_type = 'namespace' and exists (select 1 from tables t
            where t.id = a.object_id::uuid and t.namespace_id = a.subject_id::uuid and t.kind = 'table')
        when 'column' then a.relation = 'parent' and a.subject_type = 'table'
            and a.subject_id = split_part(a.object_id, '.', 1)
            and exists (select 1 from grants g where g.object_type = 'column' and g.object_id = a.object_id)
        when 'view' then a.relation = 'parent' and a.subject_type = 'namespace' and exists (select 1 from tables t
            where t.id = a.object_id::uuid and t.namespace_id = a.subject_id::uuid and t.kind = 'view')
        when 'generic_table' then a.relation = 'parent' and a.subject_type = 'namespace' and exists (
            select 1 from tables t where t.id = a.object_id::uuid and t.namespace_id = a.subject_id::uuid
                and t.kind = 'generic_table')
        else false end
"""  # noqa: S608 - composed of names of the schema

_GRANTED = f"""
    select a.ord, case when bool_and(g.expires_at is not null) then max(g.expires_at) end as until
    from granted a join grants g
        on g.privilege = a.relation and g.principal_type = a.subject_type and g.principal_id = a.subject_id
        and g.object_type = a.object_type and g.object_id = a.object_id
    where (g.expires_at is null or g.expires_at > clock_timestamp()) and {_ACTIVE}
    group by a.ord
"""  # noqa: S608 - composed of constants of this module; every value is a bound parameter

_READ_COLUMNS = f"""
    select a.ord, case when bool_and(g.expires_at is not null) then max(g.expires_at) end as until
    from reading a join grants g
        on g.object_type = 'column' and split_part(g.object_id, '.', 1) = a.object_id and g.privilege = 'select'
        and g.principal_type = a.subject_type and g.principal_id = a.subject_id
    where a.object_type = 'table' and (g.expires_at is null or g.expires_at > clock_timestamp()) and {_ACTIVE}
    group by a.ord
"""  # noqa: S608 - composed of constants of this module; every value is a bound parameter

_FLAGGED = f"""
    select a.ord, null::timestamptz as until from flagged a
    where a.subject_id = '{ALL_USERS}' and a.subject_type in ('user', 'role') and case a.object_type
        when 'warehouse' then exists (
            select 1 from warehouses w where w.id = a.object_id::uuid and w.managed_access)
        when 'namespace' then exists (
            select 1 from namespaces n where n.id = a.object_id::uuid and n.managed_access)
        else false end
"""  # noqa: S608 - composed of constants of this module; every value is a bound parameter

_REASONS = ", ".join(f"'{privilege.value}'" for privilege in sorted(TRAVERSE_REASONS))

#: Grants that give `traverse` to the subject of `a`: those on objects below the container of `a`, also ended ones.
GRANTS_BELOW = f"""
    from grants g
    left join tables t on t.kind = case g.object_type when 'column' then 'table' else g.object_type end
        and t.id = case when g.object_type in ('table', 'view', 'generic_table') then g.object_id::uuid
            when g.object_type = 'column' then split_part(g.object_id, '.', 1)::uuid end
    left join namespaces n on n.id = coalesce(
        t.namespace_id, case g.object_type when 'namespace' then g.object_id::uuid end)
    left join warehouses w on w.id = coalesce(
        n.warehouse_id, case g.object_type when 'warehouse' then g.object_id::uuid end)
    where g.principal_type = a.subject_type and g.principal_id = a.subject_id and g.privilege in ({_REASONS})
        and case a.object_type
            when 'namespace' then a.object_id::uuid = any(n.ancestors)
                or (t.id is not null and n.id = a.object_id::uuid)
            when 'warehouse' then n.id is not null and w.id = a.object_id::uuid
            when 'project' then w.project_id = a.object_id
            else false end
"""

# Grants without an expiry are searched first: most have none, and the first one found decides. Only otherwise the
# latest expiry is computed.
_TRAVERSED = f"""
    select e.ord, e.until from (
        select a.ord, a.endless, case when not a.endless then
            (select max(g.expires_at) {GRANTS_BELOW} and g.expires_at > clock_timestamp()) end as until
        from (
            select a.*, exists (select 1 {GRANTS_BELOW} and g.expires_at is null) as endless
            from derived a where {_ACTIVE}) a) e
    where e.endless or e.until is not null
"""  # noqa: S608 - composed of constants of this module; every value is a bound parameter

_STATEMENTS = {
    "edges": _EDGES,
    "granted": _GRANTED,
    "derived": _TRAVERSED,
    "reading": _READ_COLUMNS,
    "flagged": _FLAGGED,
}
"""The select for each kind of key: which of them are desired, with their expiries."""


def path_above(project_id: str, warehouse_id: str, namespaces: Sequence[str]) -> list[ObjectKey]:
    """Return the containers of an object, starting with the project.

    Holders of grants on the object need `traverse` on them.
    """
    return [
        ObjectKey(ObjectType.PROJECT, project_id),
        ObjectKey(ObjectType.WAREHOUSE, warehouse_id),
        *(ObjectKey(ObjectType.NAMESPACE, id) for id in namespaces),
    ]


def following(grant: TupleKey, above: Sequence[ObjectKey]) -> list[TupleKey]:
    """Return the key of a grant and the keys of further tuples that it requires.

    These are `traverse` on the containers `above`, if the grant makes its object visible. A grant on a column also
    requires the tuple `parent` between the column and its table, and `read_columns` on the table.
    """
    keys = [grant]
    if grant.object.type is ObjectType.COLUMN:
        table = table_of(grant.object)
        keys += [TupleKey(table, "parent", grant.object), TupleKey(grant.subject, READ_COLUMNS, table)]
    if grant.relation in TRAVERSE_REASONS:
        keys += [TupleKey(grant.subject, TRAVERSE, container) for container in above if container.type in _CONTAINERS]
    return keys


_CONTAINERS = frozenset({ObjectType.PROJECT, ObjectType.WAREHOUSE, ObjectType.NAMESPACE})


# The statement finds grants by the index on their objects, so its cost depends on the moved objects and not on all
# grants.
_PRINCIPALS_BELOW = text(
    f"""
    with inside as materialized (
        select n.id from namespaces n where :type = 'namespace'
            and (n.id = cast(:id as uuid) or cast(:id as uuid) = any(n.ancestors))),
    objects as materialized (
        select cast(:type as text) as type, cast(:id as text) as id
        union select 'namespace', i.id::text from inside i
        union select t.kind, t.id::text from tables t join inside i on i.id = t.namespace_id),
    on_objects as materialized (
        select g.principal_type, g.principal_id
        from objects o join grants g on g.object_type = o.type and g.object_id = o.id
        where g.privilege in ({_REASONS}) and (g.expires_at is null or g.expires_at > clock_timestamp())
        order by g.id for key share of g),
    on_columns as materialized (
        select g.principal_type, g.principal_id
        from objects o join grants g on g.object_type = 'column' and split_part(g.object_id, '.', 1) = o.id
        where o.type = 'table' and (g.expires_at is null or g.expires_at > clock_timestamp())
        order by g.id for key share of g)
    select held.principal_type, held.principal_id
    from (select * from on_objects union select * from on_columns) held
    order by held.principal_type, held.principal_id
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)


async def principals_below(connection: AsyncConnection, moved: ObjectKey) -> list[Principal]:
    """Return the principals that need `traverse` above this object: holders of a live grant on it or on an object in
    it.

    The grants are locked until the transaction ends. A concurrent revocation then finds the object in its new place.
    """
    rows = await connection.execute(_PRINCIPALS_BELOW, {"type": moved.type.value, "id": moved.id})
    return [Principal(PrincipalType(row.principal_type), row.principal_id) for row in rows]


@dataclass(frozen=True, slots=True)
class Containers:
    """The location of an object: its warehouse or None, and the containers above it, starting with the project."""

    warehouse_id: UUID | None
    above: tuple[ObjectKey, ...]


_PLACES = text(
    """
    select a.ord, w.project_id, w.id as warehouse_id, n.id as namespace_id, n.ancestors
    from unnest(cast(:types as text[]), cast(:ids as text[])) with ordinality as a(type, id, ord)
    left join tables t on t.kind = case a.type when 'column' then 'table' else a.type end
        and t.id = case when a.type in ('table', 'view', 'generic_table') then a.id::uuid
            when a.type = 'column' then split_part(a.id, '.', 1)::uuid end
    left join namespaces n on n.id = coalesce(t.namespace_id, case a.type when 'namespace' then a.id::uuid end)
    left join warehouses w on w.id = coalesce(n.warehouse_id, case a.type when 'warehouse' then a.id::uuid end)
    order by a.ord
    """
)


async def containers_of(connection: AsyncConnection, objects: Sequence[ObjectKey]) -> dict[ObjectKey, Containers]:
    """Return the current location of each object.

    An object outside of warehouses, or a deleted one, has no containers.
    """
    unique = list(dict.fromkeys(objects))
    values = {"types": [key.type.value for key in unique], "ids": [key.id for key in unique]}
    found: dict[ObjectKey, Containers] = {}
    for key, row in zip(unique, await connection.execute(_PLACES, values), strict=True):
        above: list[ObjectKey] = []
        if row.warehouse_id is not None and key.type is not ObjectType.WAREHOUSE:
            inside = row.ancestors if key.type is ObjectType.NAMESPACE else (*row.ancestors, row.namespace_id)
            above = path_above(row.project_id, str(row.warehouse_id), [str(id) for id in inside])
        elif row.warehouse_id is not None:
            above = [ObjectKey(ObjectType.PROJECT, row.project_id)]
        found[key] = Containers(row.warehouse_id, tuple(above))
    return found
