# SPDX-License-Identifier: Apache-2.0
"""Compute the containers in which absent objects would be.

Checks of an absent object use as deep a path in the hierarchy as checks of an invisible one, so that both take the same
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import and_, bindparam, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns import refs
from gateway.access.nouns.resolved import AbsentLocation
from gateway.db.schema.tables import namespaces
from gateway.db.schema.warehouses import warehouses
from gateway.iceberg.identifiers import Namespace


def is_in_a_warehouse(ref: refs.Ref) -> bool:
    """Return True for a reference to an object in a warehouse. It contains the path of the object, or the warehouse."""
    return isinstance(ref, refs.NamespaceRef | refs.NamespaceIdRef | refs.TabularRef)


async def read_absent_locations(
    connection: AsyncConnection, some: Sequence[refs.Ref]
) -> dict[refs.Ref, AbsentLocation]:
    """Return the warehouse and the deepest existing namespace in which each object would be.

    One statement reads all paths. A reference by id has no path: its namespaces are unknown. A reference that names no
    warehouse, or one that does not exist, is left out.
    """
    ways = {ref: way for ref in some if (way := _above(ref)) is not None}
    keys = list(dict.fromkeys((warehouse, key) for warehouse, above in ways.values() for key in above))
    ids = list(dict.fromkeys(warehouse for warehouse, _ in ways.values()))
    rows = (await connection.execute(_PLACES, {"ids": ids, "keys": keys})).all()
    projects = {row.id: row.project_id for row in rows}
    found = {(row.id, row.path_key): (*row.ancestors, row.namespace_id) for row in rows if row.path_key is not None}
    absent_locations: dict[refs.Ref, AbsentLocation] = {}
    for ref, (warehouse, above) in ways.items():
        if warehouse in projects:
            path = next((found[warehouse, key] for key in reversed(above) if (warehouse, key) in found), ())
            absent_locations[ref] = AbsentLocation(projects[warehouse], path)
    return absent_locations


def _above(ref: refs.Ref) -> tuple[UUID, tuple[str, ...]] | None:
    """Return the warehouse of a reference and the keys of the namespaces above its object, from the top level down.

    None for a reference without a warehouse.
    """
    match ref:
        case refs.TabularRef(key=UUID()):
            return ref.warehouse_id, ()
        case refs.NamespaceIdRef():
            return None if ref.warehouse_id is None else (ref.warehouse_id, ())
        case refs.TabularRef():
            levels = ref.identifier.namespace.levels
        case refs.NamespaceRef():
            levels = ref.namespace.levels[:-1]
        case _:
            raise TypeError(f"{type(ref).__name__} has no path")
    return ref.warehouse_id, tuple(Namespace(levels[: depth + 1]).key for depth in range(len(levels)))


_ON_THE_WAY = and_(
    namespaces.c.warehouse_id == warehouses.c.id,
    tuple_(namespaces.c.warehouse_id, namespaces.c.path_key).in_(bindparam("keys", expanding=True)),
)
_PLACES = (
    select(
        warehouses.c.id,
        warehouses.c.project_id,
        namespaces.c.path_key,
        namespaces.c.ancestors,
        namespaces.c.id.label("namespace_id"),
    )
    .select_from(warehouses.outerjoin(namespaces, _ON_THE_WAY))
    .where(warehouses.c.id.in_(bindparam("ids", expanding=True)))
)
