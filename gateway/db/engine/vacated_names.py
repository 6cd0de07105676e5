# SPDX-License-Identifier: Apache-2.0
"""Statements on names that restricted objects had before a rename, drop or move.

They compare the data policies of the former object with those of the next object of the same name (`policy_loss.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.rows import fetch_all
from gateway.iceberg.identifiers import NamePattern

TAKEN: Final = """
    select 1 from vacated_names v
    where v.taken_in is not null and v.announced_at is null
        and v.taken_in = cast(cast(pg_current_xact_id() as text) as bigint)
"""
"""The query for rows whose name this transaction gave to another object, and that were not settled."""


class TakenName(NamedTuple):
    """A restriction of the former holder of a name, which now belongs to the object `object_id`.

    `definition` and `tag_ids` are JSON. The tag is None for a policy that was bound to the object or above it;
    `via_tag` is True if the policy is bound to the tag. `held` is True if the restriction holds for the new object, and
    `direct` if the policy is bound to it or above it. `policy_loss` is the setting of the warehouse.
    """

    id: UUID
    policy_id: UUID
    applies_to: str
    definition: str
    tag_ids: str
    tag_id: UUID | None
    tag_name: str | None
    via_tag: bool
    direct: bool
    held: bool
    object_id: UUID
    kind: str
    warehouse_id: UUID
    project_id: str
    levels: list[str]
    name: str
    policy_loss: str


async def taken(connection: AsyncConnection) -> Sequence[TakenName]:
    """Return the restrictions of the former objects whose names this transaction gave to other objects."""
    return await fetch_all(connection, TakenName, _TAKEN)


async def announced(
    connection: AsyncConnection, policy_id: UUID, *, after: UUID | None, limit: int
) -> Sequence[TakenName]:
    """Return the permitted losses of a policy, in rows as `taken` returns them.

    At most `limit` objects are included, in order of their ids, starting after `after`.
    """
    return await fetch_all(connection, TakenName, _ANNOUNCED, {"policy": policy_id, "after": after, "limit": limit})


def _compared(entries: str) -> TextClause:
    """Return the statement of `taken` for the rows of `vacated_names` that the query `entries` selects."""
    # A policy that is bound to a tag of a whole object covers as much as a policy that is bound to the object itself.
    return text(
        f"""
        with taken as materialized ({entries}),
        holders as (
            select distinct taken_by as id, name_key = '' as is_namespace from taken),
        placed as materialized (
            select h.id, t.kind, t.name, n.levels,
                containers_of_table(t.namespace_id, t.name_key) as containers
            from holders h join tables t on t.id = h.id join namespaces n on n.id = t.namespace_id
            where not h.is_namespace
            union all
            select h.id, 'namespace', '', n.levels,
                coalesce(containers_of_namespace(n.parent_id), array[n.warehouse_id])
            from holders h join namespaces n on n.id = h.id where h.is_namespace),
        present as materialized (
            select p.id as of_id, r.*, exists (
                    select 1 from data_policy_bindings b
                    where b.policy_id = r.policy_id and b.object_id = r.tag_id and b.object_type = 'tag') as via_tag
            from placed p cross join lateral name_restrictions(p.id, p.containers) as r)
        select t.id, t.policy_id, d.applies_to, cast(d.definition as text) as definition,
            cast(d.tag_ids as text) as tag_ids, t.tag_id, g.name as tag_name,
            exists (
                select 1 from data_policy_bindings b
                where b.policy_id = t.policy_id and b.object_id = t.tag_id and b.object_type = 'tag') as via_tag,
            exists (
                select 1 from present r where r.of_id = t.taken_by and r.policy_id = t.policy_id
                    and r.tag_id is null and r.released <@ t.released) as direct,
            exists (
                select 1 from present r
                where r.of_id = t.taken_by and r.policy_id = t.policy_id and r.released <@ t.released
                    and case when t.tag_id is null then r.tag_id is null or r.via_tag and r.column_name is null
                        else r.tag_id = t.tag_id
                            and (r.column_name is null or lower(r.column_name) = lower(t.column_name)) end) as held,
            t.taken_by as object_id, p.kind, t.warehouse_id, w.project_id, p.levels, p.name, w.policy_loss
        from taken t join data_policies d on d.id = t.policy_id join warehouses w on w.id = t.warehouse_id
            left join tags g on g.id = t.tag_id join placed p on p.id = t.taken_by
        order by t.taken_by, t.policy_id, t.id
        """  # noqa: S608 - composed of constants; every value is a bound parameter
    )


_TAKEN_IDS: Final = f"select v.id {TAKEN.replace('select 1', '', 1)}"
_TAKEN = _compared(f"select * from vacated_names where id in ({_TAKEN_IDS})")  # noqa: S608 - composed of constants
_ANNOUNCED = _compared(
    """
    select * from vacated_names
    where policy_id = cast(:policy as uuid) and announced_at is not null and taken_by in (
        select distinct taken_by from vacated_names
        where policy_id = cast(:policy as uuid) and announced_at is not null
            and (cast(:after as uuid) is null or taken_by > cast(:after as uuid))
        order by taken_by limit cast(:limit as integer))
    """
)


async def settle(connection: AsyncConnection, permitted: Sequence[UUID]) -> None:
    """Keep the rows `permitted` as permitted losses, and delete the other rows of names that this transaction gave to
    other objects.
    """
    await connection.execute(_ANNOUNCE, {"ids": list(permitted)})
    await connection.execute(_FORGET)


_ANNOUNCE = text("update vacated_names set announced_at = clock_timestamp() where id = any(cast(:ids as uuid[]))")
_FORGET = text(f"delete from vacated_names where id in ({_TAKEN_IDS})")  # noqa: S608 - composed of constants


async def forget(connection: AsyncConnection, policy_id: UUID, names: Sequence[tuple[UUID, NamePattern]]) -> None:
    """Delete the rows of a policy for names that match one of `names`, pairs of a warehouse and a pattern."""
    for warehouse_id, pattern in names:
        values = {"policy": policy_id, "warehouse": warehouse_id, "pattern": pattern.like}
        await connection.execute(_FORGET_NAMED, {**values, "levels": len(pattern.levels)})


_FORGET_NAMED = text(
    """
    delete from vacated_names v
    where v.policy_id = cast(:policy as uuid) and v.warehouse_id = cast(:warehouse as uuid) and v.name_key <> ''
        and cardinality(string_to_array(v.path_key, chr(31))) + 1 = cast(:levels as integer)
        and v.path_key || chr(31) || v.name_key like cast(:pattern as text)
    """
)


async def sweep(connection: AsyncConnection, *, older_than_days: int, limit: int) -> None:
    """Delete up to `limit` rows that are older than this number of days and whose name no new object has."""
    await connection.execute(_SWEEP, {"days": older_than_days, "limit": limit})


_SWEEP = text(
    """
    delete from vacated_names where id in (
        select id from vacated_names
        where taken_by is null and vacated_at < clock_timestamp() - make_interval(days => cast(:days as integer))
        limit cast(:limit as integer) for update skip locked)
    """
)
