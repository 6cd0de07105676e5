# SPDX-License-Identifier: Apache-2.0
"""Map result rows of the resolver's queries to the `Resolved…` objects that a permit carries."""

from __future__ import annotations

from typing import TypeVar

from gateway.access.nouns.card import Resolved
from gateway.access.nouns.resolved import (
    ResolvedGenericTable,
    ResolvedNamespace,
    ResolvedTable,
    ResolvedView,
    ResolvedWarehouse,
)
from gateway.db.pools.rows import AnyRow
from gateway.db.tables.former_names import former_from
from gateway.iceberg.identifiers import Namespace, TableIdentifier
from gateway.storage.registry import stored_profile

Row = TypeVar("Row", bound=Resolved)


def row_from(kind: type[Row], row: AnyRow) -> Row:
    """Return the object of a row that has the fields of its type as columns."""
    return kind(**{name: getattr(row, name) for name in kind.__struct_fields__})


def warehouse_from(row: AnyRow) -> ResolvedWarehouse:
    """Return the warehouse of a row with the `_WAREHOUSE` columns."""
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
        # A verdict for another profile says nothing about this one.
        scope_verdict=row.w_scope_verdict if row.w_scope_version == row.w_profile_version else None,
        soft_deletion=row.w_soft_deletion,
        data_policy_revision=row.w_data_policy_revision,
    )


def namespace_from(row: AnyRow) -> ResolvedNamespace:
    """Return the namespace of a row with the `_WAREHOUSE` and `_NAMESPACE` columns."""
    return ResolvedNamespace(
        id=row.n_id,
        warehouse=warehouse_from(row),
        namespace=Namespace(tuple(row.n_levels)),
        ancestors=tuple(row.n_ancestors),
        former=former_from(row.n_former),
    )


def table_from(row: AnyRow) -> ResolvedTable:
    """Return the table of a row with all three groups of columns."""
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


def view_from(row: AnyRow) -> ResolvedView:
    """Return the view of a row with all three groups of columns."""
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


def generic_table_from(row: AnyRow) -> ResolvedGenericTable:
    """Return the generic table of a row with all three groups of columns."""
    namespace = namespace_from(row)
    return ResolvedGenericTable(
        id=row.t_id,
        namespace=namespace,
        identifier=TableIdentifier(namespace.namespace, row.t_name),
        location=row.t_location,
        format=row.t_format,
        former=former_from(row.t_former),
    )
