# SPDX-License-Identifier: Apache-2.0
"""Read what the load of a table needs from the database: its data policies, and the tags that are sent as labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.engine.database import Database
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import fetch_all


class TablePolicy(NamedTuple):
    """A binding of a data policy that concerns a table: the policy, and the bound object."""

    id: UUID
    name: str
    kind: str
    applies_to: str
    object_type: str
    object_id: UUID


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


async def of_table(connection: AsyncConnection, table_id: UUID, containers: Sequence[UUID]) -> Sequence[TablePolicy]:
    """Return the bindings that concern a table, ordered by the ids of their policies."""
    values = {"table": table_id, "places": [table_id, *containers]}
    return await fetch_all(connection, TablePolicy, _OF_TABLE, values)


class LabelRow(NamedTuple):
    """A tag of an object or, with `field_id`, of a column. The value is empty for a tag without a value."""

    object_id: UUID
    field_id: int | None
    name: str
    value: str


# Two branches, because each of them uses its own partial index.
_LABELS = DirectRead(
    text(
        """
        select a.object_id, cast(null as integer) as field_id, t.name, coalesce(a.value, '') as value
        from tag_attachments a join tags t on t.id = a.tag_id
        where a.field_id is null and a.object_id in (
            select cast(each as uuid) from jsonb_array_elements_text(cast(cast(:places as text) as jsonb)) as each)
        union all
        select a.object_id, a.field_id, t.name, coalesce(a.value, '')
        from tag_attachments a join tags t on t.id = a.tag_id
        where a.field_id is not null and a.object_id = cast(:id as uuid)
        """
    ),
    LabelRow,
)


async def labels(database: Database, id: UUID, containers: Sequence[UUID]) -> Sequence[LabelRow]:
    """Return the tags of an object, of its columns and of its containers. Raises DatabaseUnavailable."""
    places = msgspec.json.encode([id, *containers]).decode()
    return await database.read_all(_LABELS, {"places": places, "id": id})
