# SPDX-License-Identifier: Apache-2.0
"""Read the data policies that are bound to a table, its name, its containers and its tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.rows import AnyRow

_OF_TABLE: Final = text(
    """
    with places as (
        select unnest(cast(:places as uuid[])) as id
        union all
        select unnest(data_policy_names_of(t.warehouse_id, n.path_key, t.name_key))
        from tables t join namespaces n on n.id = t.namespace_id where t.id = cast(:table as uuid)),
    tagged as (
        select distinct a.tag_id from tag_attachments a join places p on p.id = a.object_id
        where a.field_id is null or a.object_id = cast(:table as uuid))
    select d.id, d.name, d.definition ->> 'kind' as kind, d.applies_to, b.object_type, b.object_id
    from data_policy_bindings b join data_policies d on d.id = b.policy_id
    where case when b.object_type = 'tag' then b.object_id in (select tag_id from tagged)
        else b.object_id in (select id from places) end
    order by d.id, b.object_type, b.object_id
    """
)


async def of_table(connection: AsyncConnection, table_id: UUID, containers: Sequence[UUID]) -> Sequence[AnyRow]:
    """Return the bindings that concern a table, by the ids of their policies.

    Rows have `id`, `name`, `kind` and `applies_to` of the policy, and the bound `object_type` and `object_id`.
    """
    values = {"table": table_id, "places": [table_id, *containers]}
    return (await connection.execute(_OF_TABLE, values)).all()
