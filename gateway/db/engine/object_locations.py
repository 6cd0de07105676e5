# SPDX-License-Identifier: Apache-2.0
"""Read the project id and the warehouse id of objects, for paths of the management API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey
from gateway.db.schema.objects import IN_PROJECTS


@dataclass(frozen=True, slots=True)
class ObjectLocation:
    """The project and the warehouse of an object. Each is None for an object outside of one."""

    project_id: str | None = None
    warehouse_id: str | None = None


def joined_locations(type: str, id: str) -> str:
    """Return an SQL `join` that adds the row of an object, and its warehouse as `w`, to columns with the object's type
    and id.

    Namespaces are `n`; tables, views and generic tables are `t`.
    """
    in_projects = " ".join(
        f"left join {table.name} on {table.name}.id = case {type} when '{each.value}' then {id}::uuid end"
        for each, table in IN_PROJECTS.items()
    )
    return f"""
    {in_projects}
    left join tables t on t.id = case when {type} in ('table', 'view', 'generic_table') then {id}::uuid
        when {type} = 'column' then split_part({id}, '.', 1)::uuid end
    left join namespaces n on n.id = case {type} when 'namespace' then {id}::uuid end
    left join warehouses w
        on w.id = coalesce(t.warehouse_id, n.warehouse_id, case {type} when 'warehouse' then {id}::uuid end)
    """


def project_of(type: str, id: str) -> str:
    """Return the SQL of an object's project id, from the joins with the same columns.

    It is null for servers and users.
    """
    in_projects = ", ".join(f"{table.name}.project_id" for table in IN_PROJECTS.values())
    return f"coalesce(w.project_id, {in_projects}, case {type} when 'project' then {id} end)"


async def object_locations(
    connection: AsyncConnection, keys: Sequence[ObjectKey]
) -> Mapping[ObjectKey, ObjectLocation]:
    """Return the locations of those objects that exist. One statement reads all of them."""
    unique = list(dict.fromkeys(keys))
    parameters = {"types": [key.type.value for key in unique], "ids": [key.id for key in unique]}
    rows = await connection.execute(_OBJECT_LOCATIONS, parameters)
    return {unique[row.ord - 1]: ObjectLocation(row.project_id, row.warehouse_id) for row in rows}


_OBJECT_LOCATIONS = text(
    f"""
    select a.ord, w.id::text as warehouse_id, {project_of("a.type", "a.id")} as project_id
    from unnest(cast(:types as text[]), cast(:ids as text[])) with ordinality as a(type, id, ord)
    {joined_locations("a.type", "a.id")}
    """  # noqa: S608 - composed of names of the schema; every value is a bound parameter
)
