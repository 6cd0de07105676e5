# SPDX-License-Identifier: Apache-2.0
"""References of the relationship model, read from the parameters of a path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from uuid import UUID

from gateway.access.refs import (
    GenericTable,
    GenericTableRef,
    NamespaceIdRef,
    NamespaceRef,
    ProjectRef,
    RoleRef,
    ServerRef,
    Table,
    TableRef,
    TabularRef,
    UserRef,
    View,
    ViewRef,
    WarehouseRef,
)
from gateway.iceberg.errors import BadRequestException, PrefixIsNotWarehouseID
from gateway.iceberg.identifiers import Namespace, TableIdentifier

PathParameters = Mapping[str, Any]
Value = TypeVar("Value")
Kind = TypeVar("Kind", Table, View, GenericTable)


def read_path(kind: type[Value], path: PathParameters) -> Value:
    """Return the reference of this type that a path names. Raises 400 for a parameter that cannot be one."""
    value: Value = REFS[kind](path)
    return value


def uuid_of(path: PathParameters, name: str) -> UUID:
    """Return an id in a path. Raises 400 when it is none."""
    try:
        return UUID(path[name])
    except ValueError:
        raise BadRequestException(f"{name} in the path is not a UUID.") from None


def warehouse_of_prefix(prefix: str) -> UUID:
    """Return the warehouse of an Iceberg prefix. Raises PrefixIsNotWarehouseID."""
    try:
        return UUID(prefix)
    except ValueError:
        raise PrefixIsNotWarehouseID("The prefix is not the id of a warehouse.") from None


def _warehouse(path: PathParameters) -> WarehouseRef:
    if "prefix" in path:
        return WarehouseRef(warehouse_of_prefix(path["prefix"]))
    return WarehouseRef(uuid_of(path, "warehouse_id"))


def _namespace(path: PathParameters) -> NamespaceRef:
    return NamespaceRef(warehouse_of_prefix(path["prefix"]), Namespace.parse(path["namespace"]))


def _namespace_id(path: PathParameters) -> NamespaceIdRef:
    """Return a namespace, in the warehouse of the path if the path names one."""
    namespace = uuid_of(path, "namespace_id")
    return NamespaceIdRef(namespace, uuid_of(path, "warehouse_id") if "warehouse_id" in path else None)


def _tabular(kind: type[Kind], name: str, id: str) -> Callable[[PathParameters], TabularRef[Kind]]:
    """Return a reader of references by the name in a catalog path, or by the id in a management path."""

    def read(path: PathParameters) -> TabularRef[Kind]:
        if "prefix" not in path:
            return TabularRef(kind, uuid_of(path, "warehouse_id"), uuid_of(path, id))
        warehouse = warehouse_of_prefix(path["prefix"])
        return TabularRef(kind, warehouse, TableIdentifier(Namespace.parse(path["namespace"]), path[name]))

    return read


REFS: Final[Mapping[Any, Callable[[PathParameters], Any]]] = {
    ServerRef: lambda path: ServerRef(),
    ProjectRef: lambda path: ProjectRef(path["project_id"]),
    WarehouseRef: _warehouse,
    NamespaceRef: _namespace,
    NamespaceIdRef: _namespace_id,
    TableRef: _tabular(Table, "table", "table_id"),
    ViewRef: _tabular(View, "view", "view_id"),
    GenericTableRef: _tabular(GenericTable, "table", "generic_table_id"),
    RoleRef: lambda path: RoleRef(uuid_of(path, "role_id")),
    UserRef: lambda path: UserRef(path["user_id"]),
}
"""How a path names each type of reference."""
