# SPDX-License-Identifier: Apache-2.0
"""References to objects, as requests state them.

A reference holds names or ids. The resolver finds its row, or none. The door processes both cases alike, so that no
answer distinguishes an absent object from an invisible one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Generic, TypeAlias, TypeVar
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
    TAG = "tag"
    DATA_POLICY = "data_policy"


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
    """A warehouse by its name inside a project, as in `GET /v1/config`."""

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
    """A namespace by its id, as in the management API. With `warehouse_id`, only in that warehouse."""

    type: ClassVar[ObjectType] = ObjectType.NAMESPACE
    namespace_id: UUID
    warehouse_id: UUID | None = None


class Table:
    """The kind of a reference to a table."""

    type: ClassVar[ObjectType] = ObjectType.TABLE


class View:
    """The kind of a reference to a view."""

    type: ClassVar[ObjectType] = ObjectType.VIEW


class GenericTable:
    """The kind of a reference to a generic table."""

    type: ClassVar[ObjectType] = ObjectType.GENERIC_TABLE


TabularKind = TypeVar("TabularKind", Table, View, GenericTable)


@dataclass(frozen=True, slots=True)
class TabularRef(Generic[TabularKind]):
    """A table, view or generic table of a warehouse, by its name, or by its id as in the management API.

    With `dropped`, a dropped object is found too, as long as it can be restored.
    """

    kind: type[TabularKind]
    warehouse_id: UUID
    key: TableIdentifier | UUID
    dropped: bool = False

    @property
    def type(self) -> ObjectType:
        """The type in the relationship model."""
        return self.kind.type

    @property
    def named(self) -> bool:
        """True if the reference is by name."""
        return isinstance(self.key, TableIdentifier)

    @property
    def identifier(self) -> TableIdentifier:
        """The name. Raises LookupError for a reference by id."""
        if not isinstance(self.key, TableIdentifier):
            raise LookupError(f"{self} is by id")
        return self.key

    @property
    def id(self) -> UUID:
        """The id. Raises LookupError for a reference by name."""
        if not isinstance(self.key, UUID):
            raise LookupError(f"{self} is by name")
        return self.key


TableRef: TypeAlias = TabularRef[Table]
ViewRef: TypeAlias = TabularRef[View]
GenericTableRef: TypeAlias = TabularRef[GenericTable]


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


@dataclass(frozen=True, slots=True)
class TagRef:
    """The definition of a tag by its id."""

    type: ClassVar[ObjectType] = ObjectType.TAG
    tag_id: UUID


@dataclass(frozen=True, slots=True)
class TagNameRef:
    """The definition of a tag by its name, in the project of a warehouse."""

    type: ClassVar[ObjectType] = ObjectType.TAG
    warehouse_id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class DataPolicyRef:
    """A data policy by its id."""

    type: ClassVar[ObjectType] = ObjectType.DATA_POLICY
    policy_id: UUID


Ref = (
    ServerRef
    | ProjectRef
    | WarehouseRef
    | WarehouseNameRef
    | NamespaceRef
    | NamespaceIdRef
    | TableRef
    | ViewRef
    | GenericTableRef
    | UserRef
    | RoleRef
    | DataPolicyRef
    | TagRef
    | TagNameRef
)


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """One object of the relationship model: its type and the id its tuples carry."""

    type: ObjectType
    id: str


def column_key(table_id: UUID | str, field_id: int) -> ObjectKey:
    """Return the key of a top-level column, `<table>.<field>`, from the ids of its table and field."""
    return ObjectKey(ObjectType.COLUMN, f"{table_id}.{field_id}")


def table_of(column: ObjectKey) -> ObjectKey:
    """Return the key of the table that contains the column."""
    return ObjectKey(ObjectType.TABLE, column.id.partition(".")[0])


def field_of(column: ObjectKey) -> int:
    """Return the field id of a column."""
    return int(column.id.partition(".")[2])


#: Object types inside of a warehouse. Cached answers about them are keyed by its revision.
IN_A_WAREHOUSE = frozenset(
    {ObjectType.NAMESPACE, ObjectType.TABLE, ObjectType.COLUMN, ObjectType.VIEW, ObjectType.GENERIC_TABLE}
)

#: Object types inside of a namespace. They share the names of one namespace. The rows of `tables` have these as their
#: kinds.
TABULARS = frozenset({ObjectType.TABLE, ObjectType.VIEW, ObjectType.GENERIC_TABLE})

#: Id of an object that does not exist. It is checked in place of an absent object, so that absence costs the same calls
#: as invisibility. No row and no tuple ever has it.
UNUSED_ID = "00000000-0000-0000-0000-00000000dead"
