# SPDX-License-Identifier: Apache-2.0
"""Map the types, actions and ids of AuthZEN requests to object types, relations and references. Pure.

The id of an object is that of its row; the id of an object in a warehouse follows that of its warehouse and a slash:
`<warehouse id>/<table id>`. Names are accepted too: `<warehouse id>/<namespace level>/<table name>`, each part
percent-encoded. A part below a warehouse that is a UUID is an id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote
from uuid import UUID

from gateway.access.nouns.cards import ACTIONS
from gateway.access.nouns.data_policy import DataPolicyRef
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import (
    TABULARS,
    GenericTable,
    NamespaceIdRef,
    NamespaceRef,
    ObjectType,
    Ref,
    Table,
    TabularRef,
    View,
    WarehouseRef,
)
from gateway.access.nouns.relations import Can
from gateway.access.nouns.role import RoleRef
from gateway.access.nouns.server import ServerRef
from gateway.access.nouns.tag import TagRef
from gateway.access.tuples import Principal, PrincipalType, is_valid_in_tuples
from gateway.iceberg.errors import CatalogError
from gateway.iceberg.identifiers import Namespace, TableIdentifier

#: A yes to this action may concern some columns only, and an AuthZEN decision cannot name them.
_NOT_MAPPED: Final = frozenset({Can.READ_COLUMNS})

#: Columns and users have no actions of their own here.
MAPPED_TYPES: Final = tuple(
    type for type in ObjectType if ACTIONS[type] - _NOT_MAPPED and type is not ObjectType.COLUMN
)

_IN_PROJECTS: Final[Mapping[ObjectType, Callable[[UUID], Ref]]] = {
    ObjectType.ROLE: RoleRef,
    ObjectType.TAG: TagRef,
    ObjectType.DATA_POLICY: DataPolicyRef,
}

SERVER_ID: Final = "server"
"""The id of the only server."""

MAX_ID: Final = 2048
"""The greatest number of characters of an id. Longer ones name no object."""


class InvalidMapping(ValueError):
    """The mapping names an unknown object type, relation or place. The message names the entry."""


@dataclass(frozen=True, slots=True)
class MappedType:
    """A type of resources: its name in requests, its object type, and its actions.

    With `within`, resources are the tables, views or generic tables of this namespace, and their ids are their names.
    """

    name: str
    type: ObjectType
    actions: Mapping[str, Can] = field(hash=False)
    within: NamespaceRef | None = None

    def reference(self, id: str) -> Ref | None:
        """Return the reference to the resource with this id; None if no object can have the id."""
        if not id.isprintable() or not 0 < len(id) <= MAX_ID:
            return None
        try:
            if self.within is not None:
                return _tabular(self.type, self.within.warehouse_id, TableIdentifier(self.within.namespace, id))
            return _reference(self.type, id)
        except (ValueError, CatalogError):
            return None

    def reference_of(self, id: str, warehouse_id: UUID | None) -> Ref:
        """Return the reference to the object whose row has this id. Raises LookupError if there is none."""
        return reference_by_id(self.type, id, warehouse_id)

    def id_of(self, id: str, warehouse_id: UUID | None, name: str) -> str:
        """Return the id in responses of the object whose row has this id and name. `reference` reads it."""
        if self.within is not None:
            return name
        if warehouse_id is None or self.type is ObjectType.WAREHOUSE:
            return id
        return f"{warehouse_id}/{id}"


def reference_by_id(type: ObjectType, id: str, warehouse_id: UUID | None) -> Ref:
    """Return the reference to the object whose row has this id, in a warehouse if it is in one.

    Raises LookupError for an object without reference, such as a column.
    """
    whole = id if warehouse_id is None or type is ObjectType.WAREHOUSE else f"{warehouse_id}/{id}"
    found = None if type not in MAPPED_TYPES else _reference(type, SERVER_ID if type is ObjectType.SERVER else whole)
    if found is None:
        raise LookupError(f"no reference to a {type} has the id {whole}")
    return found


def own_type(type: ObjectType) -> MappedType:
    """Return the mapping of an object type under its own name. The names of its actions are without `can_`."""
    actions = {each.value.removeprefix("can_"): each for each in sorted(ACTIONS[type] - _NOT_MAPPED)}
    return MappedType(type.value, type, actions)


def mapped_type(name: str, type: str, actions: Sequence[str], within: str | None) -> MappedType:
    """Return the mapping of a type by settings. `actions` are pairs `name=relation`; if empty, the type's own ones.

    Raises InvalidMapping.
    """
    kind = next((each for each in MAPPED_TYPES if each.value == type), None)
    if kind is None:
        raise InvalidMapping(f"{name}: unknown object type {type!r}; known are {', '.join(MAPPED_TYPES)}")
    found = dict(own_type(kind).actions)
    if actions:
        pairs = [each.partition("=") for each in actions]
        unknown = [relation for _, _, relation in pairs if relation not in found]
        if unknown:
            raise InvalidMapping(f"{name}: {kind} has no action {unknown[0]!r}; known are {', '.join(found)}")
        found = {action: found[relation] for action, _, relation in pairs}
    return MappedType(name, kind, found, None if within is None else _namespace(name, kind, within))


@dataclass(frozen=True, slots=True)
class AuthZenMapping:
    """The mapping of a deployment.

    `subjects` are the types of subjects. A subject id without a tilde belongs to the identity provider `provider`.
    """

    types: Mapping[str, MappedType]
    subjects: Mapping[str, PrincipalType]
    provider: str | None = None

    def principal(self, type: str, id: str) -> Principal | None:
        """Return the principal of a subject; None if no principal can have this type and id."""
        match self.subjects.get(type):
            case PrincipalType.ROLE:
                try:
                    return Principal(PrincipalType.ROLE, str(UUID(id)))
                except ValueError:
                    return None
            case PrincipalType.USER:
                user = f"{self.provider}~{id}" if "~" not in id and self.provider is not None else id
                provider, _, subject = user.partition("~")
                known = provider and subject and subject.isprintable() and len(user) <= MAX_ID
                return Principal(PrincipalType.USER, user) if known and is_valid_in_tuples(user) else None
        return None

    def subject_id(self, principal: Principal) -> str:
        """Return the id of a principal in responses. `principal` reads it."""
        provider, _, subject = principal.id.partition("~")
        short = principal.type is PrincipalType.USER and provider == self.provider and "~" not in subject
        return subject if short else principal.id


def _reference(type: ObjectType, id: str) -> Ref | None:
    """Return the reference to the object with this id, or None. Raises ValueError or CatalogError for malformed ids."""
    match type:
        case ObjectType.SERVER:
            return ServerRef() if id == SERVER_ID else None
        case ObjectType.PROJECT:
            return ProjectRef(id)
        case ObjectType.WAREHOUSE:
            return WarehouseRef(UUID(id))
        case _ if type in _IN_PROJECTS:
            return _IN_PROJECTS[type](UUID(id))
    warehouse, *parts = [unquote(part, errors="strict") for part in id.split("/")]
    if not parts or not all(parts):
        return None
    warehouse_id = UUID(warehouse)
    if len(parts) == 1 and (only := _uuid(parts[0])) is not None:
        return (
            NamespaceIdRef(only, warehouse_id) if type is ObjectType.NAMESPACE else _tabular(type, warehouse_id, only)
        )
    if type is ObjectType.NAMESPACE:
        return NamespaceRef(warehouse_id, Namespace(tuple(parts)))
    *levels, name = parts
    return _tabular(type, warehouse_id, TableIdentifier(Namespace(tuple(levels)), name)) if levels else None


def _tabular(type: ObjectType, warehouse_id: UUID, key: TableIdentifier | UUID) -> Ref:
    match type:
        case ObjectType.VIEW:
            return TabularRef(View, warehouse_id, key)
        case ObjectType.GENERIC_TABLE:
            return TabularRef(GenericTable, warehouse_id, key)
        case _:
            return TabularRef(Table, warehouse_id, key)


def _namespace(name: str, type: ObjectType, within: str) -> NamespaceRef:
    if type not in TABULARS:
        raise InvalidMapping(f"{name}: only tables, views and generic tables can be within a namespace")
    warehouse, *levels = [unquote(part) for part in within.split("/")]
    id = _uuid(warehouse)
    if id is None or not levels or not all(levels):
        raise InvalidMapping(f"{name}: within must be <warehouse id>/<namespace level>, not {within!r}")
    return NamespaceRef(id, Namespace(tuple(levels)))


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
