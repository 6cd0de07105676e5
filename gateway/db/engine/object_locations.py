# SPDX-License-Identifier: Apache-2.0
"""Read the ids of the project and the warehouse of objects, for paths of the management API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey


@dataclass(frozen=True, slots=True)
class ObjectLocation:
    """The project and the warehouse of an object, None for an object outside of one."""

    project_id: str | None = None
    warehouse_id: str | None = None


async def object_locations(
    connection: AsyncConnection, keys: Sequence[ObjectKey]
) -> Mapping[ObjectKey, ObjectLocation]:
    """Return the places of those objects that exist. One statement reads them."""
    unique = list(dict.fromkeys(keys))
    parameters = {"types": [key.type.value for key in unique], "ids": [key.id for key in unique]}
    rows = await connection.execute(_OBJECT_LOCATIONS, parameters)
    return {unique[row.ord - 1]: ObjectLocation(row.project_id, row.warehouse_id) for row in rows}


_OBJECT_LOCATIONS = text(
    """
    select a.ord, w.id::text as warehouse_id,
        coalesce(w.project_id, r.project_id, d.project_id, p.project_id,
            case a.type when 'project' then a.id end) as project_id
    from unnest(cast(:types as text[]), cast(:ids as text[])) with ordinality as a(type, id, ord)
    left join roles r on r.id = case a.type when 'role' then a.id::uuid end
    left join tags d on d.id = case a.type when 'tag' then a.id::uuid end
    left join data_policies p on p.id = case a.type when 'data_policy' then a.id::uuid end
    left join tables t on t.id = case when a.type in ('table', 'view', 'generic_table') then a.id::uuid
        when a.type = 'column' then split_part(a.id, '.', 1)::uuid end
    left join namespaces n on n.id = case a.type when 'namespace' then a.id::uuid end
    left join warehouses w
        on w.id = coalesce(t.warehouse_id, n.warehouse_id, case a.type when 'warehouse' then a.id::uuid end)
    """
)
