# SPDX-License-Identifier: Apache-2.0
"""Convert result rows of the resolver's queries into `Resolved…` objects, and find the containers of absent objects.

An absent object is checked on as many levels of the hierarchy as an invisible one, so that both take the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

from sqlalchemy import and_, bindparam, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns import refs
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.resolved import (
    AbsentLocation,
    ResolvedGenericTable,
    ResolvedNamespace,
    ResolvedTable,
    ResolvedView,
    ResolvedWarehouse,
)
from gateway.db.resolver.caller import ClockRow
from gateway.db.resolver.resolver_statements import NamespaceRow, TabularRow, WarehouseRow
from gateway.db.schema.tables import namespaces
from gateway.db.schema.warehouses import warehouses
from gateway.db.tables.former_names import former_from
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from gateway.storage.registry import stored_profile


def is_in_a_warehouse(ref: refs.Ref) -> bool:
    """Return True if the object of the reference is in a warehouse.

    The reference contains its path, or the warehouse.
    """
    return isinstance(ref, refs.NamespaceRef | refs.NamespaceIdRef | refs.TabularRef)


async def read_absent_locations(
    connection: AsyncConnection, some: Sequence[refs.Ref]
) -> dict[refs.Ref, AbsentLocation]:
    """Return the warehouse and the deepest existing namespace in which each absent object would be.

    One statement reads all paths. A reference by id has no path, so its namespaces are unknown. A reference is left out
    if it contains no warehouse, or one that does not exist.
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
    """Return the warehouse of a reference, and the keys of the namespaces above its object from the top level down.

    Return None for a reference without a warehouse.
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
            raise TypeError(f"a {type(ref).__name__} has no path of namespaces")
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


Row = TypeVar("Row", bound=Resolved)


def row_from(kind: type[Row], row: ClockRow) -> Row:
    """Return the object of type `kind` from a row whose columns are the fields of that type."""
    return kind(**{name: getattr(row, name) for name in kind.__struct_fields__})


def warehouse_from(row: WarehouseRow) -> ResolvedWarehouse:
    """Return the warehouse of a row."""
    return ResolvedWarehouse(
        id=row.w_id,
        project_id=row.w_project_id,
        name=row.w_name,
        active=row.w_active,
        profile=row.w_profile,
        decode=stored_profile,
        profile_version=row.w_profile_version,
        revision=row.w_revision,
        credential_id=row.w_secret_id,
        allowed_format_versions=tuple(row.w_allowed),
        default_format_version=row.w_default,
        # A verdict about an earlier version of the profile says nothing about the current version.
        scope_verdict=row.w_scope_verdict if row.w_scope_version == row.w_profile_version else None,
        soft_deletion=row.w_soft_deletion,
        data_policy_revision=row.w_data_policy_revision,
    )


def namespace_from(row: NamespaceRow) -> ResolvedNamespace:
    """Return the namespace of a row."""
    return ResolvedNamespace(
        id=row.n_id,
        warehouse=warehouse_from(row),
        namespace=Namespace(tuple(row.n_levels)),
        ancestors=tuple(row.n_ancestors),
        former=former_from(row.n_former),
    )


def table_from(row: TabularRow) -> ResolvedTable:
    """Return the table of a row."""
    namespace = namespace_from(row)
    return ResolvedTable(
        id=row.t_id,
        namespace=namespace,
        identifier=TableIdentifier(namespace.namespace, row.t_name),
        location=row.t_location,
        metadata_location=row.t_metadata_location,
        version=row.t_version,
        purged_by=row.t_purged_by,
        former=former_from(row.t_former),
    )


def view_from(row: TabularRow) -> ResolvedView:
    """Return the view of a row."""
    namespace = namespace_from(row)
    return ResolvedView(
        id=row.t_id,
        namespace=namespace,
        identifier=TableIdentifier(namespace.namespace, row.t_name),
        location=row.t_location,
        metadata_location=row.t_metadata_location,
        version=row.t_version,
        former=former_from(row.t_former),
    )


def generic_table_from(row: TabularRow) -> ResolvedGenericTable:
    """Return the generic table of a row."""
    namespace = namespace_from(row)
    return ResolvedGenericTable(
        id=row.t_id,
        namespace=namespace,
        identifier=TableIdentifier(namespace.namespace, row.t_name),
        location=row.t_location,
        format=row.t_format,
        former=former_from(row.t_former),
    )
