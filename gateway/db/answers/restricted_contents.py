# SPDX-License-Identifier: Apache-2.0
"""Count the tables in containers to which data policies apply: by bindings, tags and names, as in `policy_inputs`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey
from gateway.db.answers.names import NAMESPACES_WITHIN, container_values
from gateway.db.pools.rows import fetch_all
from gateway.obligations.data_policies import AppliesTo

_POLICIES: Final = text(
    f"""
    with within as materialized (select distinct s.warehouse_id as id from ({NAMESPACES_WITHIN}) s)
    select d.id::text, d.applies_to = 'subjects' as of_subjects from data_policies d where exists (
        select 1 from data_policy_bindings b where b.policy_id = d.id and (
            b.warehouse_id in (select id from within)
            or b.object_type = 'tag' and exists (
                select 1 from tag_attachments a
                where a.tag_id = b.object_id and a.warehouse_id in (select id from within))))
    order by d.id limit :limit
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)

_COUNTS: Final = text(
    f"""
    with spaces as materialized ({NAMESPACES_WITHIN}),
    bindings as materialized (
        select b.object_type, b.object_id from data_policy_bindings b
        where b.policy_id = any(cast(:policies as uuid[]))),
    bound as materialized (
        select b.object_id as id from bindings b where b.object_type <> 'tag'
        union
        select a.object_id from bindings b join tag_attachments a on a.tag_id = b.object_id
        where b.object_type = 'tag'),
    names as materialized (select n.* from data_policy_names n join bound b on b.id = n.id),
    whole as materialized (
        select s.ord, s.id, s.path_key, s.warehouse_id, s.warehouse_id in (select id from bound) or exists (
            select 1 from bound b where b.id = s.id or b.id = any(s.ancestors)) as restricted
        from spaces s)
    select c.ord, (
        select count(*) from (
            select 1 from whole s join tables t on t.namespace_id = s.id
            where s.ord = c.ord and t.kind in ('table', 'generic_table') and t.deleted_at is null
                and t.staged_by is null and (s.restricted or t.id in (select id from bound) or exists (
                    select 1 from names n where n.warehouse_id = s.warehouse_id and n.id = any(
                        data_policy_names_of(s.warehouse_id, s.path_key, t.name_key))))
            limit :most) found) as number
    from unnest(cast(:types as text[])) with ordinality as c(type, ord)
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)


class _Policy(NamedTuple):
    id: str
    of_subjects: bool


class _Count(NamedTuple):
    ord: int
    number: int


async def policies_within(
    connection: AsyncConnection, containers: Sequence[ObjectKey], *, limit: int
) -> dict[str, AppliesTo]:
    """Return at most `limit` of the data policies that are bound in the warehouses of the containers, by their ids."""
    rows = await fetch_all(connection, _Policy, _POLICIES, {**container_values(containers), "limit": limit})
    return {row.id: AppliesTo.SUBJECTS if row.of_subjects else AppliesTo.EVERYONE for row in rows}


async def restricted_tables(
    connection: AsyncConnection, containers: Sequence[ObjectKey], policies: Collection[str], *, most: int
) -> Mapping[ObjectKey, int]:
    """Return the number of tables and generic tables in each container to which one of the policies applies.

    Counting ends at `most`.
    """
    values = {**container_values(containers), "policies": sorted(policies), "most": most}
    rows = await fetch_all(connection, _Count, _COUNTS, values)
    return {containers[row.ord - 1]: row.number for row in rows}
