# SPDX-License-Identifier: Apache-2.0
"""Return the containers of namespaces and tables, from the project down, as objects of the OpenFGA model."""

from __future__ import annotations

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.resolved import ResolvedNamespace
from gateway.db.tuples.desired_tuples import path_above


def above_table(namespace: ResolvedNamespace) -> list[ObjectKey]:
    """Return the containers of a table in `namespace`, from the project down."""
    return [*above_namespace(namespace), namespace.key]


def above_namespace(namespace: ResolvedNamespace) -> list[ObjectKey]:
    """Return the containers of `namespace`, from the project down."""
    warehouse = namespace.warehouse
    return path_above(warehouse.project_id, str(warehouse.id), [str(id) for id in namespace.ancestors])


def parent_of(namespace: ResolvedNamespace) -> ObjectKey:
    """Return the parent of `namespace`: another namespace or the warehouse."""
    if namespace.ancestors:
        return ObjectKey(ObjectType.NAMESPACE, str(namespace.ancestors[-1]))
    return namespace.warehouse.key
