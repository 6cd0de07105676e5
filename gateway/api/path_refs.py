# SPDX-License-Identifier: Apache-2.0
"""References of the relationship model, read from the parameters of a path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from uuid import UUID

from gateway.access.refs import (
    GenericTableIdRef,
    GenericTableRef,
    KeptGenericTableRef,
    KeptTableRef,
    KeptViewRef,
    NamespaceIdRef,
    NamespaceRef,
    ProjectRef,
    RoleRef,
    ServerRef,
    TableIdRef,
    TableRef,
    UserRef,
    ViewIdRef,
    ViewRef,
    WarehouseRef,
)
from gateway.iceberg.errors import BadRequestException, PrefixIsNotWarehouseID
from gateway.iceberg.identifiers import Namespace, TableIdentifier

PathParameters = Mapping[str, Any]
Value = TypeVar("Value")


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


def _named(kind: Callable[[UUID, TableIdentifier], Any], name: str) -> Callable[[PathParameters], Any]:
    def read(path: PathParameters) -> Any:
        warehouse = warehouse_of_prefix(path["prefix"])
        return kind(warehouse, TableIdentifier(Namespace.parse(path["namespace"]), path[name]))

    return read


def _identified(kind: Callable[[UUID, UUID], Any], name: str) -> Callable[[PathParameters], Any]:
    def read(path: PathParameters) -> Any:
        return kind(uuid_of(path, "warehouse_id"), uuid_of(path, name))

    return read


REFS: Final[Mapping[Any, Callable[[PathParameters], Any]]] = {
    ServerRef: lambda path: ServerRef(),
    ProjectRef: lambda path: ProjectRef(path["project_id"]),
    WarehouseRef: _warehouse,
    NamespaceRef: _namespace,
    NamespaceIdRef: _namespace_id,
    TableRef: _named(TableRef, "table"),
    ViewRef: _named(ViewRef, "view"),
    GenericTableRef: _named(GenericTableRef, "table"),
    TableIdRef: _identified(TableIdRef, "table_id"),
    ViewIdRef: _identified(ViewIdRef, "view_id"),
    GenericTableIdRef: _identified(GenericTableIdRef, "generic_table_id"),
    KeptTableRef: _identified(KeptTableRef, "table_id"),
    KeptViewRef: _identified(KeptViewRef, "view_id"),
    KeptGenericTableRef: _identified(KeptGenericTableRef, "generic_table_id"),
    RoleRef: lambda path: RoleRef(uuid_of(path, "role_id")),
    UserRef: lambda path: UserRef(path["user_id"]),
}
"""How a path names each type of reference."""
