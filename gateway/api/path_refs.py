# SPDX-License-Identifier: Apache-2.0
r"""Read references to objects from the path of a request, and from the query parameter `referenced-by`.

Ids of principals in paths may contain slashes (`oidc~spiffe://cluster/job`) and backslashes. The client encodes them as
`%2F` and `%5C`, and the router splits the decoded path at slashes. So each slash of such an id is replaced by U+001F,
and each backslash by U+001E, until the reference is read. No id contains these two: subjects and role sources have no
control characters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, TypeVar, cast, get_type_hints
from urllib.parse import unquote
from uuid import UUID

from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.refs import (
    GenericTable,
    GenericTableRef,
    NamespaceIdRef,
    NamespaceRef,
    Ref,
    Table,
    TableRef,
    TabularRef,
    View,
    ViewRef,
    WarehouseRef,
)
from gateway.access.nouns.server import UserRef
from gateway.iceberg.errors import BadRequestException, PrefixIsNotWarehouseID, ReferencedByDepthExceeded
from gateway.iceberg.identifiers import SEPARATOR, Namespace, TableIdentifier

_STAND_INS: Final = {"/": "\x1f", "\\": "\x1e"}
_PROTECTED: Final = str.maketrans(_STAND_INS)
_RESTORED: Final = str.maketrans({stand_in: character for character, stand_in in _STAND_INS.items()})
_USER: Final = ("", "management", "v1", "user")
_ROLE: Final = ("", "management", "v1", "role")
#: Number of path segments before the member in `/management/v1/role/{role_id}/members/{member_type}/{member_id}`.
_BEFORE_MEMBER: Final = 7


def is_principal_next(before: Sequence[str]) -> bool:
    """Return True if the next segment of a path is the id of a principal. `before` are the decoded segments before that
    segment.

    It is the user of `/management/v1/user/{user_id}/…`, or the member of a role.
    """
    if tuple(before) == _USER:
        return True
    return len(before) == _BEFORE_MEMBER and tuple(before[:4]) == _ROLE and before[5] == "members"


def protect_slashes(id: str) -> str:
    """Return the decoded id of a principal as one segment for the router. Raises 400 if the id contains U+001E or
    U+001F.
    """
    if any(stand_in in id for stand_in in _STAND_INS.values()):
        raise BadRequestException("The id of a principal in the path must not contain control characters.")
    return id.translate(_PROTECTED)


def principal_in_path(segment: str) -> str:
    """Return the id of a principal from its path parameter, the inverse of `protect_slashes`."""
    return segment.translate(_RESTORED)


PathParameters = Mapping[str, Any]
Value = TypeVar("Value")
Kind = TypeVar("Kind", Table, View, GenericTable)


def read_path(kind: type[Value], path: PathParameters) -> Value:
    """Return the reference of this type in a path. Raises 400 for a malformed path parameter."""
    value: Value = REFS[kind](path)
    return value


def uuid_of(path: PathParameters, name: str) -> UUID:
    """Return the UUID in the path parameter `name`. Raises 400 if it is malformed."""
    try:
        return UUID(path[name])
    except ValueError:
        raise BadRequestException(f"{name} in the path must be a UUID.") from None


def warehouse_of_prefix(prefix: str) -> UUID:
    """Return the id of the warehouse from the path parameter `prefix`. Raises PrefixIsNotWarehouseID."""
    try:
        return UUID(prefix)
    except ValueError:
        raise PrefixIsNotWarehouseID(
            "The prefix in the path must be the UUID of a warehouse, as GET /v1/config returns it."
        ) from None


def referenced_views(query: bytes, warehouse: UUID, longest: int) -> list[ViewRef]:
    """Return the views in the query parameter `referenced-by`, outermost first; empty if it is absent.

    Commas separate the views and are split before percent-decoding. In each part, the namespace separator precedes the
    view's name (Iceberg REST specification). Raises 400 for a malformed parameter, and ReferencedByDepthExceeded for
    more than `longest` views.
    """
    given = [part[14:] for part in query.decode("latin-1").split("&") if part.startswith("referenced-by=")]
    if len(given) > 1:
        raise BadRequestException(f"The query parameter referenced-by is given {len(given)} times; give it once.")
    views = []
    for text in given[0].split(",") if given and given[0] else ():
        try:
            namespace, parted, name = unquote(text, errors="strict").rpartition(SEPARATOR)
        except UnicodeDecodeError:
            raise BadRequestException("The query parameter referenced-by is not percent-encoded UTF-8.") from None
        if not parted:
            raise BadRequestException(
                "The query parameter referenced-by must name each view by its namespace and its name."
            )
        views.append(TabularRef(View, warehouse, TableIdentifier(Namespace.parse(namespace), name)))
    if len(views) > longest:
        raise ReferencedByDepthExceeded(
            f"The query parameter referenced-by names {len(views)} views; at most {longest} are allowed."
        )
    return views


def _fields(kind: type[Ref]) -> Callable[[PathParameters], Ref]:
    """Return a function that reads the fields of a reference from the path parameters `in_path`."""
    hints = get_type_hints(kind)
    # Every concrete reference is a dataclass. Only the base class `Ref` is none.
    declared = fields(cast(Any, kind))
    kinds = {name: hints[each.name] for each, name in zip(declared, kind.in_path, strict=True)}

    def read(path: PathParameters) -> Ref:
        return kind(*(uuid_of(path, name) if type is UUID else path[name] for name, type in kinds.items()))

    return read


def _warehouse(path: PathParameters) -> WarehouseRef:
    if "prefix" in path:
        return WarehouseRef(warehouse_of_prefix(path["prefix"]))
    return WarehouseRef(uuid_of(path, "warehouse_id"))


def _namespace(path: PathParameters) -> NamespaceRef:
    return NamespaceRef(warehouse_of_prefix(path["prefix"]), Namespace.parse(path["namespace"]))


def _namespace_id(path: PathParameters) -> NamespaceIdRef:
    """Return the reference to a namespace by id, with the id of its warehouse if the path contains it."""
    namespace = uuid_of(path, "namespace_id")
    return NamespaceIdRef(namespace, uuid_of(path, "warehouse_id") if "warehouse_id" in path else None)


def _tabular(kind: type[Kind], name: str, id: str) -> Callable[[PathParameters], TabularRef[Kind]]:
    """Return a function that reads a reference to a table or view: by name from a catalog path, by id from a management
    path.
    """

    def read(path: PathParameters) -> TabularRef[Kind]:
        if "prefix" not in path:
            return TabularRef(kind, uuid_of(path, "warehouse_id"), uuid_of(path, id))
        warehouse = warehouse_of_prefix(path["prefix"])
        return TabularRef(kind, warehouse, TableIdentifier(Namespace.parse(path["namespace"]), path[name]))

    return read


REFS: Final[Mapping[Any, Callable[[PathParameters], Any]]] = {
    **{ref: _fields(ref) for card in CARDS.values() for ref in card.refs if ref.in_path or not fields(cast(Any, ref))},
    WarehouseRef: _warehouse,
    NamespaceRef: _namespace,
    NamespaceIdRef: _namespace_id,
    TableRef: _tabular(Table, "table", "table_id"),
    ViewRef: _tabular(View, "view", "view_id"),
    GenericTableRef: _tabular(GenericTable, "table", "generic_table_id"),
    UserRef: lambda path: UserRef(principal_in_path(path["user_id"])),
}
"""Functions that read a reference from path parameters, by the type of the reference."""
