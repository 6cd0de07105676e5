# SPDX-License-Identifier: Apache-2.0
"""Select the candidates of a search: principals that may have a right on an object, and objects of a type on which a
principal may have a right.

The statements read live grants, and may return more than there is: an evaluation of each candidate follows. They return
every candidate, because each tuple of a principal is required by a grant on the object, on a container of it, or (for
visible containers) on an object inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.authzen_mapping import SERVER_ID
from gateway.access.nouns.refs import TABULARS, ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.object_locations import joined_locations, project_of
from gateway.db.pools.rows import fetch_all
from gateway.db.schema.objects import IN_PROJECTS


class ObjectCandidate(NamedTuple):
    """An object: its id, its warehouse, and its name. An object outside of warehouses has no warehouse."""

    id: str
    warehouse_id: UUID | None
    name: str


class _SubjectRow(NamedTuple):
    """The id of a principal."""

    id: str


_LIVE = "(g.expires_at is null or g.expires_at > clock_timestamp())"

# Members of a role hold its privileges. Ownership of a role implies membership, as in the model.
_GIVES = f"g.object_type = 'role' and g.privilege in ('assignee', 'ownership') and {_LIVE}"

_ALL_IN_PROJECTS = " ".join(
    f"union all select '{type.value}', o.id::text from {table.name} o "  # noqa: S608 - names of the schema
    "where :type = 'project' and o.project_id = cast(:id as text)"
    for type, table in IN_PROJECTS.items()
)

_SUBJECTS = text(
    f"""
    with recursive inside as materialized (
        select n.id from namespaces n join warehouses w on w.id = n.warehouse_id
        where :type = 'namespace' and (n.id = cast(:uuid as uuid) or cast(:uuid as uuid) = any(n.ancestors))
            or :type = 'warehouse' and w.id = cast(:uuid as uuid)
            or :type = 'project' and w.project_id = cast(:id as text)),
    objects as materialized (
        select a.type, a.id from unnest(cast(:types as text[]), cast(:ids as text[])) as a(type, id)
        union all select 'namespace', i.id::text from inside i
        union all select t.kind, t.id::text from tables t join inside i on i.id = t.namespace_id
        union all select 'warehouse', w.id::text from warehouses w
            where :type = 'project' and w.project_id = cast(:id as text)
        {_ALL_IN_PROJECTS}),
    members as (
        select g.principal_type as type, g.principal_id as id
            from objects o join grants g on g.object_type = o.type and g.object_id = o.id where {_LIVE}
        union select g.principal_type, g.principal_id from objects o join grants g
            on g.object_type = 'column' and split_part(g.object_id, '.', 1) = o.id where o.type = 'table' and {_LIVE}
        union select g.principal_type, g.principal_id from grants g
            where (g.object_type = 'server' or :type = 'server') and {_LIVE}
        union select cast(:own_type as text), cast(:own_id as text)
        union select g.principal_type, g.principal_id
            from members m join grants g on g.object_id = m.id where m.type = 'role' and {_GIVES})
    select distinct m.id from members m where m.type = cast(:of_type as text) and m.id > cast(:after as text)
    order by m.id limit :limit
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)


async def subjects(
    connection: AsyncConnection,
    on: ObjectKey,
    above: Sequence[ObjectKey],
    *,
    of_type: PrincipalType,
    caller: Principal,
    after: str,
    limit: int,
) -> list[str]:
    """Return the ids of principals of a type that may have a right on an object, in order, after the id `after`.

    `above` are the containers of the object. The caller is always a candidate: its token may give it further roles.
    """
    keys = [on, *above]
    is_uuid = on.type not in (ObjectType.SERVER, ObjectType.PROJECT)
    values = {
        "type": on.type.value,
        "id": on.id,
        "uuid": UUID(on.id) if is_uuid else None,
        "types": [key.type.value for key in keys],
        "ids": [key.id for key in keys],
        "own_type": caller.type.value,
        "own_id": caller.id,
        "of_type": of_type.value,
        "after": after,
        "limit": limit,
    }
    return [row.id for row in await fetch_all(connection, _SubjectRow, _SUBJECTS, values)]


# The objects of the live grants of a principal and of its roles, each with its location. The path of a namespace ends
# with the namespace itself. A grant on a column counts as one on its table.
_PLACED = f"""
    with recursive principals as (
        select cast(:principal_type as text) as type, cast(:principal_id as text) as id
        union select 'role', r.id from unnest(cast(:roles as text[])) as r(id)
        union select 'role', g.object_id from principals p
            join grants g on g.principal_type = p.type and g.principal_id = p.id where {_GIVES}),
    held as materialized (
        select distinct case g.object_type when 'column' then 'table' else g.object_type end as type,
            case g.object_type when 'column' then split_part(g.object_id, '.', 1) else g.object_id end as id
        from principals p join grants g on g.principal_type = p.type and g.principal_id = p.id where {_LIVE}),
    placed as materialized (
        select h.type, h.id, {project_of("h.type", "h.id")} as project_id, w.id as warehouse_id,
            m.ancestors || m.id as path
        from held h {joined_locations("h.type", "h.id")}
        left join namespaces m on m.id = coalesce(t.namespace_id, n.id))
"""  # noqa: S608 - composed of constants of this module; every value is a bound parameter

_ABOVE = """p.type = 'server' or p.type = 'project' and p.project_id = w.project_id
        or p.type = 'warehouse' and p.warehouse_id = w.id"""
_IN = "p.type = 'namespace' and p.path[cardinality(p.path)] = any(n.ancestors || n.id)"
_AFTER = "and o.id::text > cast(:after as text) order by o.id::text limit :limit"

_TABULAR_OBJECTS = f"""
    select o.id::text as id, o.warehouse_id, o.name from tables o
    join namespaces n on n.id = o.namespace_id join warehouses w on w.id = o.warehouse_id
    where o.kind = :type and o.staged_by is null and o.deleted_at is null
        and (cast(:within as uuid) is null or o.namespace_id = cast(:within as uuid))
        and exists (select 1 from placed p where {_ABOVE} or {_IN} or p.type = o.kind and p.id = o.id::text) {_AFTER}
"""  # noqa: S608 - as above

_CONTAINER_OBJECTS = {
    ObjectType.SERVER: f"""
        select o.id, cast(null as uuid) as warehouse_id, o.id as name from (values ('{SERVER_ID}')) as o(id)
        where exists (select 1 from placed p) and o.id > cast(:after as text) limit :limit
    """,  # noqa: S608 - as above
    ObjectType.NAMESPACE: f"""
        select o.id::text as id, o.warehouse_id, array_to_string(o.levels, '.') as name from namespaces o
        join namespaces n on n.id = o.id join warehouses w on w.id = o.warehouse_id
        where exists (select 1 from placed p where {_ABOVE} or {_IN} or o.id = any(p.path)) {_AFTER}
    """,  # noqa: S608 - as above
    ObjectType.WAREHOUSE: f"""
        select o.id::text as id, o.id as warehouse_id, o.name from warehouses o join warehouses w on w.id = o.id
        where exists (select 1 from placed p where {_ABOVE} or p.warehouse_id = o.id) {_AFTER}
    """,  # noqa: S608 - as above
    ObjectType.PROJECT: f"""
        select o.id::text as id, cast(null as uuid) as warehouse_id, o.name from projects o
        where exists (select 1 from placed p where p.type = 'server' or p.project_id = o.id) {_AFTER}
    """,  # noqa: S608 - as above
}


def _objects(type: ObjectType) -> str:
    if type in TABULARS:
        return _TABULAR_OBJECTS
    if type in IN_PROJECTS:
        return f"""
            select o.id::text as id, cast(null as uuid) as warehouse_id, o.name from {IN_PROJECTS[type].name} o
            where exists (select 1 from placed p where p.type = 'server' or p.project_id = o.project_id) {_AFTER}
        """  # noqa: S608 - as above
    return _CONTAINER_OBJECTS[type]


_OBJECTS = {type: text(f"{_PLACED} {_objects(type)}") for type in (*TABULARS, *IN_PROJECTS, *_CONTAINER_OBJECTS)}


async def objects(
    connection: AsyncConnection,
    type: ObjectType,
    principal: Principal,
    *,
    roles: Sequence[str],
    within: UUID | None,
    after: str,
    limit: int,
) -> list[ObjectCandidate]:
    """Return objects of a type on which a principal may have a right, ordered by id, after the id `after`.

    `roles` are further roles of the principal. With `within`, only tabular objects directly in this namespace are
    returned. Raises KeyError for users and columns.
    """
    values: dict[str, object] = {
        "principal_type": principal.type.value,
        "principal_id": principal.id,
        "roles": list(roles),
        "after": after,
        "limit": limit,
    }
    if type in TABULARS:
        values |= {"type": type.value, "within": within}
    return await fetch_all(connection, ObjectCandidate, _OBJECTS[type], values)
