# SPDX-License-Identifier: Apache-2.0
"""References to objects, as requests contain them.

A reference holds names or ids. The resolver finds the row of the object, or no row. The door, which decides the
request, processes both cases alike, so that no response distinguishes an absent object from an invisible one.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from gateway.iceberg.identifiers import Namespace, TableIdentifier, fold


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

    @property
    def plural(self) -> str:
        """The plural of the type's name, for example `data_policies`."""
        return f"{self.value}s".replace("ys", "ies")


class Requested(NamedTuple):
    """The name, the namespace levels and the warehouse id in a request. Those that the request lacks are None."""

    name: str | None = None
    namespace: tuple[str, ...] | None = None
    warehouse_id: str | None = None


class Ref:
    """A reference to one object. Concrete references are frozen dataclasses beside the card of their object type.

    `in_path` has the names of the path parameters from which its fields are read, in the order of the fields. It is
    empty for references that are read in another way (`gateway.api.path_refs`). mypy refuses a reference without one of
    the abstract members; ABCMeta would make the `isinstance` of each request slower.
    """

    __slots__ = ()
    in_path: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def type(self) -> ObjectType:
        """The type of the object."""

    @abstractmethod
    def requested(self) -> Requested:
        """Return the names and ids as in the request."""

    @property
    def full_name(self) -> str | None:
        """The name with the levels of its namespace, or else the id, as in the request.

        None if the request has neither.
        """
        name, levels, _ = self.requested()
        if levels is None or self.type is ObjectType.NAMESPACE:
            return name
        return ".".join([*levels, name or ""])

    @abstractmethod
    def lookup(self) -> dict[str, Any]:
        """Return the values that identify the row, keyed by the column names in `gateway.db.resolver`."""


class IdRef(Ref):
    """A reference by an id alone, to an object outside of warehouses.

    Its only field has the name of its path parameter.
    """

    __slots__ = ()

    def requested(self) -> Requested:
        return Requested(str(self.lookup()["id"]))

    def lookup(self) -> dict[str, Any]:
        return {"id": getattr(self, self.in_path[0])}


@dataclass(frozen=True, slots=True)
class WarehouseRef(Ref):
    """A warehouse by its id, which is also the Iceberg prefix."""

    type: ClassVar[ObjectType] = ObjectType.WAREHOUSE
    warehouse_id: UUID

    def requested(self) -> Requested:
        return Requested(warehouse_id=str(self.warehouse_id))

    def lookup(self) -> dict[str, Any]:
        return {"id": self.warehouse_id}


@dataclass(frozen=True, slots=True)
class WarehouseNameRef(Ref):
    """A warehouse by its name inside a project, as in `GET /v1/config`."""

    type: ClassVar[ObjectType] = ObjectType.WAREHOUSE
    project_id: str
    name: str

    def requested(self) -> Requested:
        return Requested(self.name)

    def lookup(self) -> dict[str, Any]:
        return {"project_id": self.project_id, "name_key": fold(self.name)}


@dataclass(frozen=True, slots=True)
class NamespaceRef(Ref):
    """A namespace by its name: the levels from the top."""

    type: ClassVar[ObjectType] = ObjectType.NAMESPACE
    warehouse_id: UUID
    namespace: Namespace

    def requested(self) -> Requested:
        return Requested(self.namespace.dotted, self.namespace.levels, str(self.warehouse_id))

    def lookup(self) -> dict[str, Any]:
        return {"warehouse_id": self.warehouse_id, "path_key": self.namespace.key}


@dataclass(frozen=True, slots=True)
class NamespaceIdRef(Ref):
    """A namespace by its id, as in the management API. With `warehouse_id`, it must be in that warehouse."""

    type: ClassVar[ObjectType] = ObjectType.NAMESPACE
    namespace_id: UUID
    warehouse_id: UUID | None = None

    def requested(self) -> Requested:
        return Requested(
            str(self.namespace_id), warehouse_id=None if self.warehouse_id is None else str(self.warehouse_id)
        )

    def lookup(self) -> dict[str, Any]:
        return {"id": self.namespace_id, "warehouse_id": self.warehouse_id}


class Table:
    """The type parameter of references to tables."""

    type: ClassVar[ObjectType] = ObjectType.TABLE


class View:
    """The type parameter of references to views."""

    type: ClassVar[ObjectType] = ObjectType.VIEW


class GenericTable:
    """The type parameter of references to generic tables."""

    type: ClassVar[ObjectType] = ObjectType.GENERIC_TABLE


TabularKind = TypeVar("TabularKind", Table, View, GenericTable)


@dataclass(frozen=True, slots=True)
class TabularRef(Ref, Generic[TabularKind]):
    """A table, view or generic table of a warehouse, by its name, or by its id as in the management API.

    With `dropped`, a dropped object that can still be restored is found too.
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
            raise LookupError(f"{self} has an id and no name")
        return self.key

    @property
    def id(self) -> UUID:
        """The id. Raises LookupError for a reference by name."""
        if not isinstance(self.key, UUID):
            raise LookupError(f"{self} has a name and no id")
        return self.key

    def requested(self) -> Requested:
        warehouse = str(self.warehouse_id)
        if isinstance(self.key, UUID):
            return Requested(str(self.key), warehouse_id=warehouse)
        return Requested(self.key.name, self.key.namespace.levels, warehouse)

    def lookup(self) -> dict[str, Any]:
        if isinstance(self.key, UUID):
            return {"id": self.key, "warehouse_id": self.warehouse_id}
        path, name = self.key.namespace.key, fold(self.key.name)
        return {"warehouse_id": self.warehouse_id, "path_key": path, "name_key": name}


TableRef: TypeAlias = TabularRef[Table]
ViewRef: TypeAlias = TabularRef[View]
GenericTableRef: TypeAlias = TabularRef[GenericTable]


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """One object of the relationship model: its type and the id that its tuples contain."""

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


#: Object types inside of a namespace. They share the names of one namespace. The rows of `tables` have these as their
#: kinds.
TABULARS = frozenset({ObjectType.TABLE, ObjectType.VIEW, ObjectType.GENERIC_TABLE})

#: Id of an object that does not exist; no row and no tuple has it. It is checked in place of an absent object, so that
#: requests for absent and for invisible objects cost the same calls.
UNUSED_ID = "00000000-0000-0000-0000-00000000dead"
