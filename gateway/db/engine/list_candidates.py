# SPDX-License-Identifier: Apache-2.0
"""Select the rows of a list that a live grant may make visible, if the caller may not see the whole list.

Each statement starts from the grants of the caller and of the caller's roles, by their index. So its cost depends on
these grants and not on the size of the list. The column `by` of a row is one relation that the grants give on it.
OpenFGA then confirms that relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.door.list_visibility import TRAVERSE, Holders, Reach
from gateway.access.nouns.privileges import TRAVERSE_REASONS
from gateway.access.tuples import READ_COLUMNS
from gateway.db.pools.rows import fetch_all


class TabularCandidate(NamedTuple):
    """A table or view that a grant of the privilege `by` may make visible."""

    id: UUID
    name: str
    name_key: str
    protected: bool
    by: str


class NamespaceCandidate(NamedTuple):
    """A namespace that a grant of the privilege `by` may make visible."""

    id: UUID
    levels: Sequence[str]
    path_key: str
    protected: bool
    by: str


class ProjectCandidate(NamedTuple):
    """A project. `by` is None if only rights on the server may make it visible."""

    id: str
    name: str
    by: str | None


#: The live grants of a caller, for a statement that appends conditions with `and`. Materialize the result: otherwise
#: PostgreSQL may cast ids to UUID that are none. A grant on a column appears as `read_columns` on its table.
HELD = f"""
    select g.object_type, g.object_id, g.privilege from (
        select h.principal_type, h.principal_id, h.expires_at,
            case h.object_type when 'column' then 'table' else h.object_type end as object_type,
            case h.object_type when 'column' then split_part(h.object_id, '.', 1) else h.object_id end as object_id,
            case h.object_type when 'column' then '{READ_COLUMNS}' else h.privilege end as privilege
        from grants h) g
    where (g.principal_type = 'user' and g.principal_id = cast(:user as text)
           or g.principal_type = 'role' and g.principal_id = any(cast(:roles as text[])))
        and (g.expires_at is null or g.expires_at > clock_timestamp())
"""  # noqa: S608 - composed of constants; every value is a bound parameter

#: True if the caller holds a grant on a row `t` of tables, on a column of `t`, or on a namespace above `t`. `n` is the
#: namespace of `t`. The grant may not make the row visible: an additional candidate costs only a check.
SPOKEN_FOR = """
    exists (select 1 from grants g
        where (g.principal_type = 'user' and g.principal_id = cast(:user as text)
               or g.principal_type = 'role' and g.principal_id = any(cast(:roles as text[])))
            and (g.object_type = t.kind and g.object_id = t.id::text
                 or g.object_type = 'column' and split_part(g.object_id, '.', 1) = t.id::text
                 or g.object_type = 'namespace'
                    and g.object_id = any(cast(n.ancestors as text[]) || cast(n.id as text)))
            and (g.expires_at is null or g.expires_at > clock_timestamp()))
"""

_AFTER = """
    (cast(:after_key as text) is null or ({key}, {id}) > (cast(:after_key as text), cast(:after_id as uuid)))
    order by {key}, {id} limit :limit
"""

_TABULARS = text(
    f"""
    with held as materialized ({HELD} and g.object_type = :kind and g.privilege = any(cast(:own as text[]))),
    candidates as (select h.object_id::uuid as id, min(h.privilege) as by from held h group by h.object_id)
    select t.id, t.name, t.name_key, t.protected, c.by from candidates c join tables t on t.id = c.id
    where t.namespace_id = :namespace_id and t.kind = :kind and t.staged_by is null and t.deleted_at is null
        and {_AFTER.format(key="t.name_key", id="t.id")}
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)

# The path of the objects of grants: their namespaces from the top down. The path of a namespace ends with itself.
_PLACED = """
    select h.object_type, h.privilege, n.warehouse_id, n.ancestors || n.id as path
    from held h
    left join tables t on t.kind = h.object_type
        and t.id = case when h.object_type in ('table', 'view', 'generic_table') then h.object_id::uuid end
    join namespaces n on n.id = coalesce(
        t.namespace_id, case h.object_type when 'namespace' then h.object_id::uuid end)
"""

_CHILDREN = text(
    f"""
    with held as materialized (
        {HELD} and (g.object_type = 'namespace' and g.privilege = any(cast(:own as text[]))
            or g.object_type in ('namespace', 'table', 'view', 'generic_table')
                and g.privilege = any(cast(:below as text[])))),
    placed as ({_PLACED}),
    candidates as (
        select p.path[cast(:depth as int)] as id, min(p.privilege) filter (
            where p.object_type = 'namespace' and cardinality(p.path) = cast(:depth as int)) as own
        from placed p
        where p.warehouse_id = :warehouse_id and cardinality(p.path) >= cast(:depth as int)
            and (cast(:parent_id as uuid) is null or p.path[cast(:depth as int) - 1] = cast(:parent_id as uuid))
        group by 1)
    select n.id, n.levels, n.path_key, n.protected, coalesce(c.own, '{TRAVERSE}') as by
    from candidates c join namespaces n on n.id = c.id
    where {_AFTER.format(key="n.path_key", id="n.id")}
    """  # noqa: S608 - composed of constants; every value is a bound parameter
)

_WAREHOUSES = text(
    f"""
    with held as materialized ({HELD}),
    own as (
        select h.object_id::uuid as id, min(h.privilege) as by from held h
        where h.object_type = 'warehouse' and h.privilege = any(cast(:own as text[])) group by h.object_id),
    inside as materialized (
        select * from held h where h.object_type in ('namespace', 'table', 'view', 'generic_table')
            and h.privilege = any(cast(:below as text[]))),
    ways as (select distinct p.warehouse_id as id from ({_PLACED.replace("held h", "inside h")}) p),
    everything as (
        select exists (select 1 from held h where h.privilege = any(cast(:above as text[]))
            and (h.object_type = 'server' or h.object_type = 'project' and h.object_id = :project_id)) as seen)
    select w.id, case when o.id is not null then o.by when y.id is not null then '{TRAVERSE}' end as by
    from warehouses w left join own o on o.id = w.id left join ways y on y.id = w.id
    where w.project_id = :project_id and (o.id is not null or y.id is not null or (select seen from everything))
    """  # noqa: S608 - composed of constants; every value is a bound parameter
)

_PROJECTS = text(
    f"""
    with held as materialized ({HELD}),
    own as (
        select h.object_id as id, min(h.privilege) as by from held h
        where h.object_type = 'project' and h.privilege = any(cast(:own as text[])) group by h.object_id),
    inside as materialized (
        select * from held h where h.object_type in ('warehouse', 'namespace', 'table', 'view', 'generic_table')
            and h.privilege = any(cast(:below as text[]))),
    reached as (
        select p.warehouse_id as id from ({_PLACED.replace("held h", "inside h")}) p
        union select case i.object_type when 'warehouse' then i.object_id::uuid end from inside i),
    ways as (select distinct w.project_id as id from warehouses w where w.id in (select r.id from reached r)),
    everything as (
        select exists (select 1 from held h where h.privilege = any(cast(:above as text[]))
            and h.object_type = 'server') as seen)
    select p.id, p.name, case when o.id is not null then o.by when y.id is not null then '{TRAVERSE}' end as by
    from projects p left join own o on o.id = p.id left join ways y on y.id = p.id
    where o.id is not null or y.id is not null or (select seen from everything)
    order by p.name_key
    """  # noqa: S608 - composed of constants; every value is a bound parameter
)


def _parameters(holders: Holders, reach: Reach) -> dict[str, Any]:
    reasons = [*(each.value for each in TRAVERSE_REASONS), READ_COLUMNS] if reach.below else []
    return {"user": holders.user, "roles": list(holders.roles), "own": list(reach.own), "below": reasons}


def _page(after: tuple[str, UUID] | None, limit: int) -> dict[str, Any]:
    key, id = after or (None, None)
    return {"after_key": key, "after_id": id, "limit": limit}


async def tabulars(
    connection: AsyncConnection,
    holders: Holders,
    reach: Reach,
    *,
    namespace_id: UUID,
    kind: str,
    after: tuple[str, UUID] | None,
    limit: int,
) -> Sequence[TabularCandidate]:
    """Return tables or views of a namespace that grants may make visible, ordered by folded name."""
    own = {key: value for key, value in _parameters(holders, reach).items() if key != "below"}
    values = {**own, **_page(after, limit), "namespace_id": namespace_id, "kind": kind}
    return await fetch_all(connection, TabularCandidate, _TABULARS, values)


async def children(
    connection: AsyncConnection,
    holders: Holders,
    reach: Reach,
    *,
    warehouse_id: UUID,
    parent: tuple[UUID, int] | None,
    after: tuple[str, UUID] | None,
    limit: int,
) -> Sequence[NamespaceCandidate]:
    """Return direct children of a namespace or warehouse that grants may make visible, ordered by folded name.

    `parent` is the namespace and its depth (1 at the top), None for the warehouse.
    """
    above, depth = parent or (None, 0)
    values = {**_parameters(holders, reach), **_page(after, limit), "warehouse_id": warehouse_id}
    return await fetch_all(
        connection, NamespaceCandidate, _CHILDREN, {**values, "parent_id": above, "depth": depth + 1}
    )


async def warehouses(
    connection: AsyncConnection, holders: Holders, reach: Reach, *, project_id: str
) -> dict[UUID, str | None]:
    """Return the warehouses of a project, each with `by`.

    It is None if only rights on containers may make the warehouse visible.
    """
    values = {**_parameters(holders, reach), "above": list(reach.above), "project_id": project_id}
    return {row.id: row.by for row in await connection.execute(_WAREHOUSES, values)}


async def projects(connection: AsyncConnection, holders: Holders, reach: Reach) -> Sequence[ProjectCandidate]:
    """Return projects that may be visible, ordered by name."""
    values = {**_parameters(holders, reach), "above": list(reach.above)}
    return await fetch_all(connection, ProjectCandidate, _PROJECTS, values)
