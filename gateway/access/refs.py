# SPDX-License-Identifier: Apache-2.0
"""What a request points at, before anybody knows whether it exists.

A reference is what the caller wrote (names or ids); resolving turns it into a row or into nothing. Both cases then
take the same way through the door, so that an answer never tells an absent thing from an invisible one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar
from uuid import UUID

from gateway.iceberg.identifiers import Namespace, TableIdentifier


class ObjectType(StrEnum):
    """Object types of the relationship model (`fga_model/`)."""

    SERVER = "server"
    PROJECT = "project"
    WAREHOUSE = "warehouse"
    NAMESPACE = "namespace"
    TABLE = "table"
    COLUMN = "column"
    VIEW = "view"
    GENERIC_TABLE = "generic_table"
    USER = "user"
    ROLE = "role"


@dataclass(frozen=True, slots=True)
class ServerRef:
    """The one server of this deployment."""

    type: ClassVar[ObjectType] = ObjectType.SERVER


@dataclass(frozen=True, slots=True)
class ProjectRef:
    """A project by its id."""

    type: ClassVar[ObjectType] = ObjectType.PROJECT
    project_id: str


@dataclass(frozen=True, slots=True)
class WarehouseRef:
    """A warehouse by its id, which is also the Iceberg prefix."""

    type: ClassVar[ObjectType] = ObjectType.WAREHOUSE
    warehouse_id: UUID


@dataclass(frozen=True, slots=True)
class WarehouseNameRef:
    """A warehouse by its name inside a project, as `GET /v1/config` asks for it."""

    type: ClassVar[ObjectType] = ObjectType.WAREHOUSE
    project_id: str
    name: str


@dataclass(frozen=True, slots=True)
class NamespaceRef:
    """A namespace by its levels."""

    type: ClassVar[ObjectType] = ObjectType.NAMESPACE
    warehouse_id: UUID
    namespace: Namespace


@dataclass(frozen=True, slots=True)
class NamespaceIdRef:
    """A namespace by its id, as the management API names it; in that warehouse if the path names one."""

    type: ClassVar[ObjectType] = ObjectType.NAMESPACE
    namespace_id: UUID
    warehouse_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table by its name."""

    type: ClassVar[ObjectType] = ObjectType.TABLE
    warehouse_id: UUID
    identifier: TableIdentifier


@dataclass(frozen=True, slots=True)
class TableIdRef:
    """A table by its id, as the management API names it."""

    type: ClassVar[ObjectType] = ObjectType.TABLE
    warehouse_id: UUID
    table_id: UUID


@dataclass(frozen=True, slots=True)
class ViewRef:
    """A view by its name."""

    type: ClassVar[ObjectType] = ObjectType.VIEW
    warehouse_id: UUID
    identifier: TableIdentifier


@dataclass(frozen=True, slots=True)
class ViewIdRef:
    """A view by its id, as the management API names it."""

    type: ClassVar[ObjectType] = ObjectType.VIEW
    warehouse_id: UUID
    view_id: UUID


@dataclass(frozen=True, slots=True)
class KeptTableRef:
    """A table by its id, whether it was dropped or not, for as long as it can be brought back."""

    type: ClassVar[ObjectType] = ObjectType.TABLE
    warehouse_id: UUID
    table_id: UUID


@dataclass(frozen=True, slots=True)
class KeptViewRef:
    """As `KeptTableRef`, for a view."""

    type: ClassVar[ObjectType] = ObjectType.VIEW
    warehouse_id: UUID
    view_id: UUID


@dataclass(frozen=True, slots=True)
class GenericTableRef:
    """A generic table by its name."""

    type: ClassVar[ObjectType] = ObjectType.GENERIC_TABLE
    warehouse_id: UUID
    identifier: TableIdentifier


@dataclass(frozen=True, slots=True)
class GenericTableIdRef:
    """A generic table by its id, as the management API names it."""

    type: ClassVar[ObjectType] = ObjectType.GENERIC_TABLE
    warehouse_id: UUID
    generic_table_id: UUID


@dataclass(frozen=True, slots=True)
class KeptGenericTableRef:
    """As `KeptTableRef`, for a generic table."""

    type: ClassVar[ObjectType] = ObjectType.GENERIC_TABLE
    warehouse_id: UUID
    generic_table_id: UUID


@dataclass(frozen=True, slots=True)
class UserRef:
    """A user by its id `<idp>~<subject>`."""

    type: ClassVar[ObjectType] = ObjectType.USER
    user_id: str


@dataclass(frozen=True, slots=True)
class RoleRef:
    """A role by its id."""

    type: ClassVar[ObjectType] = ObjectType.ROLE
    role_id: UUID


Ref = (
    ServerRef
    | ProjectRef
    | WarehouseRef
    | WarehouseNameRef
    | NamespaceRef
    | NamespaceIdRef
    | TableRef
    | TableIdRef
    | ViewRef
    | ViewIdRef
    | KeptTableRef
    | KeptViewRef
    | GenericTableRef
    | GenericTableIdRef
    | KeptGenericTableRef
    | UserRef
    | RoleRef
)


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """One object of the relationship model: its type and the id its tuples carry."""

    type: ObjectType
    id: str


def column_key(table_id: UUID | str, field_id: int) -> ObjectKey:
    """A top-level column of a table, by its field id: `<table>.<field>`."""
    return ObjectKey(ObjectType.COLUMN, f"{table_id}.{field_id}")


def table_of(column: ObjectKey) -> ObjectKey:
    """The table that a column is of."""
    return ObjectKey(ObjectType.TABLE, column.id.partition(".")[0])


def field_of(column: ObjectKey) -> int:
    """The field id of a column."""
    return int(column.id.partition(".")[2])


#: What lies in a warehouse, and so under its revision: answers about it are remembered under that.
IN_A_WAREHOUSE = frozenset(
    {ObjectType.NAMESPACE, ObjectType.TABLE, ObjectType.COLUMN, ObjectType.VIEW, ObjectType.GENERIC_TABLE}
)

#: What lies in a namespace; they share one name space, and the rows of `tables` have these as their kinds.
TABULARS = frozenset({ObjectType.TABLE, ObjectType.VIEW, ObjectType.GENERIC_TABLE})

#: Asked about in place of an object that does not exist, so that absence costs the same calls as invisibility.
#: No row ever gets this id and the model's tuples never name it.
NOBODY_HAS_THIS_ID = "00000000-0000-0000-0000-00000000dead"
