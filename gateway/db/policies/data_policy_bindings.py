# SPDX-License-Identifier: Apache-2.0
"""Statements on the bindings of data policies to objects, on released columns, and on the tables under a policy.

A mask also covers columns that had its name earlier. A policy manager can release such a column from the policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple
from uuid import UUID, uuid5

from sqlalchemy import delete as delete_from
from sqlalchemy import func, or_, select, text
from sqlalchemy import update as update_of
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.policies.data_policy_revisions import touch
from gateway.db.pools.rows import fetch_all
from gateway.db.schema.policies import data_policies, data_policy_bindings, data_policy_names, data_policy_releases
from gateway.db.schema.tables import tables
from gateway.iceberg.identifiers import NamePattern

_OF = data_policy_bindings.c


MAX_NAMES: Final = 1_000
"""Maximum number of names in a warehouse that data policies are bound to. Each decision compares a table with all."""


class TooManyNames(Exception):
    """More than MAX_NAMES names of a warehouse are bound to data policies. The transaction cannot continue."""


class BindingRow(NamedTuple):
    """A binding. `kind` is set for a table, and `levels` are the patterns of a name; both are None for other
    objects.
    """

    object_type: str
    object_id: UUID
    warehouse_id: UUID | None
    recorded_fields: Sequence[int]
    bound_by: str
    bound_at: datetime
    kind: str | None
    levels: Sequence[str] | None


class CoveredTable(NamedTuple):
    """A table that a policy covers, with the levels, id and ancestors of its namespace.

    `kind` may be `generic_table`.
    """

    id: UUID
    kind: str
    warehouse_id: UUID
    project_id: str
    levels: Sequence[str]
    name: str
    namespace_id: UUID
    ancestors: Sequence[UUID]


class Reader(NamedTuple):
    """A principal whose grant lets it read the table `id`."""

    id: UUID
    principal_type: Literal["user", "role"]
    principal_id: str


@dataclass(frozen=True, slots=True)
class Bound:
    """An object to bind. `type` is `table` for a generic table too.

    `warehouse_id` is None for a tag. `recorded` are the field ids of a table to record.
    """

    type: str
    id: UUID
    warehouse_id: UUID | None
    recorded: tuple[int, ...] = ()


async def of_policy(
    connection: AsyncConnection, policy_id: UUID, *, after: UUID | None = None, limit: int | None = None
) -> Sequence[BindingRow]:
    """Return the bindings of a data policy, ordered by the ids of the objects. The page starts after the id `after`.

    Bindings that are kept only for the files of deleted tables are left out (`policy_inputs.sql`).
    """
    of_name = data_policy_names.c.id == _OF.object_id
    columns = (_OF.object_type, _OF.object_id, _OF.warehouse_id, _OF.recorded_fields, _OF.bound_by, _OF.bound_at)
    statement = select(*columns, tables.c.kind, data_policy_names.c.levels)
    statement = statement.outerjoin(tables, tables.c.id == _OF.object_id).outerjoin(data_policy_names, of_name)
    statement = statement.where(_OF.policy_id == policy_id, or_(_OF.object_type != "table", tables.c.id.is_not(None)))
    if after is not None:
        statement = statement.where(_OF.object_id > after)
    return await fetch_all(connection, BindingRow, statement.order_by(_OF.object_id).limit(limit))


async def bind(connection: AsyncConnection, policy_id: UUID, bound: Sequence[Bound], *, by: str) -> None:
    """Insert bindings that were requested.

    An existing requested binding stays as it is. A binding that an object inherited from the former object of its files
    becomes a requested one. Call `touch_warehouses` or `touch` afterwards.
    """
    if bound:
        values = [
            {
                "policy_id": policy_id,
                "object_type": each.type,
                "object_id": each.id,
                "warehouse_id": each.warehouse_id,
                "recorded_fields": list(each.recorded),
                "bound_by": by,
            }
            for each in bound
        ]
        made = insert(data_policy_bindings).values(values)
        await connection.execute(
            made.on_conflict_do_update(
                index_elements=[_OF.policy_id, _OF.object_id],
                set_={"own": True, "recorded_fields": made.excluded.recorded_fields},
                where=_OF.own.is_(False),
            )
        )


def name_id(warehouse_id: UUID, pattern: NamePattern) -> UUID:
    """Return the id of a name pattern in a warehouse.

    Patterns that match the same names in the same way have equal ids.
    """
    return uuid5(warehouse_id, pattern.like)


async def bind_names(
    connection: AsyncConnection, policy_id: UUID, names: Sequence[tuple[UUID, NamePattern]], *, by: str
) -> None:
    """Bind a policy to `names`, which are pairs of a warehouse and a pattern, as `bind` does.

    Lock the warehouses before (`data_policy_revisions.lock`), so that no concurrent change deletes the rows of the
    names. Raises TooManyNames.
    """
    if not names:
        return
    unique = {name_id(warehouse_id, pattern): (warehouse_id, pattern) for warehouse_id, pattern in names}
    values = [
        {"id": id, "warehouse_id": warehouse_id, "levels": list(pattern.levels), "pattern": pattern.like}
        for id, (warehouse_id, pattern) in unique.items()
    ]
    await connection.execute(insert(data_policy_names).values(values).on_conflict_do_nothing())
    of_warehouse = select(func.count().label("n")).select_from(data_policy_names)
    of_warehouse = of_warehouse.where(data_policy_names.c.warehouse_id.in_({id for id, _ in names}))
    counts = await connection.execute(of_warehouse.group_by(data_policy_names.c.warehouse_id))
    if any(count > MAX_NAMES for count in counts.scalars()):
        raise TooManyNames
    await bind(connection, policy_id, [Bound("name", id, at) for id, (at, _) in unique.items()], by=by)


async def unbind(connection: AsyncConnection, policy_id: UUID, ids: Sequence[UUID]) -> None:
    """Delete the bindings to these objects. A missing binding is not an error."""
    if ids:
        gone = delete_from(data_policy_bindings).where(_OF.policy_id == policy_id, _OF.object_id.in_(ids))
        await connection.execute(gone)


async def record_fields(connection: AsyncConnection, policy_id: UUID, fields: Mapping[UUID, Sequence[int]]) -> None:
    """Replace the recorded field ids in the bindings to tables. `fields` has the new ids by table id."""
    for table_id, ids in fields.items():
        here = (_OF.policy_id == policy_id, _OF.object_id == table_id)
        await connection.execute(update_of(data_policy_bindings).where(*here).values(recorded_fields=list(ids)))


async def warehouses_of(connection: AsyncConnection, policy_id: UUID) -> set[UUID | None]:
    """Return the warehouses of the bindings.

    None is included if the policy is bound to a tag, which concerns all warehouses.
    """
    statement = select(_OF.warehouse_id).where(_OF.policy_id == policy_id).distinct()
    return set((await connection.execute(statement)).scalars())


async def touch_warehouses(connection: AsyncConnection, policy_id: UUID) -> None:
    """Write a new data policy revision to the warehouses that a policy is bound in.

    For a deleted policy there are none.
    """
    found = select(data_policies.c.project_id).where(data_policies.c.id == policy_id)
    project_id = (await connection.execute(found)).scalar_one_or_none()
    if project_id is not None:
        await touch_each(connection, project_id, await warehouses_of(connection, policy_id))


async def touch_each(connection: AsyncConnection, project_id: str, warehouses: set[UUID | None]) -> None:
    """Write a new data policy revision to these warehouses. They are changed in a fixed order, to avoid deadlocks."""
    if None in warehouses:
        await touch(connection, project_id=project_id, warehouse_id=None)
        return
    for warehouse_id in sorted(each for each in warehouses if each is not None):
        await touch(connection, project_id=project_id, warehouse_id=warehouse_id)


async def release(connection: AsyncConnection, policy_id: UUID, table_id: UUID, field_id: int, *, by: str) -> None:
    """Exclude a column of a table from the policy."""
    values = {"policy_id": policy_id, "table_id": table_id, "field_id": field_id, "released_by": by}
    await connection.execute(insert(data_policy_releases).values(values).on_conflict_do_nothing())


async def covered(
    connection: AsyncConnection, policy_id: UUID, *, table_id: UUID | None = None, after: UUID | None, limit: int
) -> Sequence[CoveredTable]:
    """Return the tables that a policy covers by a binding to the table, its name, a container or a tag, ordered by id.

    `table_id` limits the rows to one table.
    """
    values = {"policy": policy_id, "table": table_id, "after": after, "limit": limit}
    return await fetch_all(connection, CoveredTable, _COVERED, values)


async def readers(connection: AsyncConnection, policy_id: UUID, ids: Sequence[UUID]) -> Sequence[Reader]:
    """Return the principals whose live grants let them read these tables, ordered by (id, principal_type,
    principal_id).

    Principals with a live grant of `exempt` on the policy are left out, and for a policy that applies to subjects all
    principals without a grant of `subject`. Members of roles and administrators of the server are not included.
    """
    return await fetch_all(connection, Reader, _READERS, {"policy": policy_id, "tables": list(ids)})


_COVERED: Final = text(
    """
    with bound as materialized (
        select object_type, object_id from data_policy_bindings where policy_id = cast(:policy as uuid)),
    placed as materialized (
        select object_type, object_id from bound where object_type <> 'tag'
        union select a.object_type, a.object_id from tag_attachments a
            join bound b on b.object_type = 'tag' and b.object_id = a.tag_id)
    select t.id, t.kind, t.warehouse_id, w.project_id, n.levels, t.name, n.id as namespace_id, n.ancestors
    from tables t join namespaces n on n.id = t.namespace_id join warehouses w on w.id = t.warehouse_id
    where t.kind in ('table', 'generic_table') and t.deleted_at is null and t.staged_by is null
        and (cast(:table as uuid) is null or t.id = cast(:table as uuid))
        and (cast(:after as uuid) is null or t.id > cast(:after as uuid))
        and exists (
            select 1 from placed p where case p.object_type
                when 'warehouse' then p.object_id = t.warehouse_id
                when 'namespace' then p.object_id = n.id or p.object_id = any(n.ancestors)
                when 'name' then p.object_id = any(data_policy_names_of(t.warehouse_id, n.path_key, t.name_key))
                else p.object_id = t.id end)
    order by t.id limit :limit
    """
)

_LIVE: Final = "(g.expires_at is null or g.expires_at > clock_timestamp())"
_READERS: Final = text(
    f"""
    with placed as materialized (
        select t.id, t.kind as type, t.id::text as on_id from tables t where t.id = any(cast(:tables as uuid[]))
        union all
        select t.id, 'namespace', a.id::text from tables t join namespaces n on n.id = t.namespace_id
            cross join lateral unnest(n.ancestors || n.id) as a(id) where t.id = any(cast(:tables as uuid[]))
        union all
        select t.id, 'warehouse', t.warehouse_id::text from tables t where t.id = any(cast(:tables as uuid[]))
        union all
        select t.id, 'project', w.project_id from tables t join warehouses w on w.id = t.warehouse_id
            where t.id = any(cast(:tables as uuid[]))),
    reading as (
        select p.id, g.principal_type, g.principal_id from placed p
            join grants g on g.object_type = p.type and g.object_id = p.on_id
        where {_LIVE} and g.privilege in ('select', 'modify', 'ownership', 'data_admin', 'project_admin')
        union
        select t.id, g.principal_type, g.principal_id from unnest(cast(:tables as uuid[])) as t(id)
            join grants g on g.object_type = 'column' and split_part(g.object_id, '.', 1) = t.id::text
        where {_LIVE} and g.privilege = 'select'),
    held as materialized (
        select g.privilege, g.principal_type, g.principal_id from grants g
        where g.object_type = 'data_policy' and g.object_id = cast(cast(:policy as uuid) as text) and {_LIVE})
    select r.id, r.principal_type, r.principal_id from reading r
    where not exists (
            select 1 from held h where h.privilege = 'exempt'
                and h.principal_type = r.principal_type and h.principal_id = r.principal_id)
        and (
            exists (select 1 from data_policies p where p.id = cast(:policy as uuid) and p.applies_to = 'everyone')
            or exists (
                select 1 from held h where h.privilege = 'subject'
                    and h.principal_type = r.principal_type and h.principal_id = r.principal_id))
    order by r.id, r.principal_type, r.principal_id
    """  # noqa: S608 - composed of constants; every value is a bound parameter
)
