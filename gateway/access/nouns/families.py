# SPDX-License-Identifier: Apache-2.0
"""Declare families of operations. A family is the same request for several object types.

Policies and the audit identify an operation by its name (`read_table_assignments`), so each object type needs a class
of its own. The common parts are written once, in an abstract operation with the field `on`. This module derives the
class of each object type from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar, cast

from gateway.access.nouns.card import Card, ResolvedInProject
from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.refs import GenericTableRef, NamespaceIdRef, ObjectType, TableRef, ViewRef, WarehouseRef
from gateway.access.nouns.server import ServerRef
from gateway.access.operation import Operation
from gateway.access.request import InPath, InPathDropped, OfRequest

Family = TypeVar("Family", bound=Operation)


@dataclass(frozen=True, slots=True)
class Target:
    """Names of an object type in requests of the management API.

    `noun` is part of operation names, `words` of their descriptions, `path` of their endpoints. `on` is the type of the
    field with the reference.
    """

    noun: str
    words: str
    path: str
    on: Any


def _target(card: Card, path: str) -> Target:
    """Return the target of an object type outside of warehouses. Its first reference type is the one by id."""
    noun = card.words.title().replace(" ", "")
    ref, marked = card.refs[0], cast(Any, InPath)
    return Target(noun, f"a {card.words}", f"{path}/{{{ref.in_path[0]}}}", marked[ref])


SERVER: Final = Target("Server", "the server", "server", InPath[ServerRef])
DEFAULT_PROJECT: Final = Target("DefaultProject", "the project of the request", "project", OfRequest)
PROJECT_OF_REQUEST: Final = replace(DEFAULT_PROJECT, noun="Project")
PROJECT: Final = _target(CARDS[ObjectType.PROJECT], "project")
WAREHOUSE: Final = Target("Warehouse", "a warehouse", "warehouse/{warehouse_id}", InPath[WarehouseRef])
NAMESPACE: Final = Target("Namespace", "a namespace", "namespace/{namespace_id}", InPath[NamespaceIdRef])
NAMESPACE_IN_WAREHOUSE: Final = replace(NAMESPACE, path=f"{WAREHOUSE.path}/{NAMESPACE.path}")
TABLE: Final = Target("Table", "a table", f"{WAREHOUSE.path}/table/{{table_id}}", InPath[TableRef])
VIEW: Final = Target("View", "a view", f"{WAREHOUSE.path}/view/{{view_id}}", InPath[ViewRef])
GENERIC_TABLE: Final = Target(
    "GenericTable",
    "a generic table",
    f"{WAREHOUSE.path}/generic-table/{{generic_table_id}}",
    InPath[GenericTableRef],
)

_CARDS_IN_PROJECTS = tuple(card for card in CARDS.values() if issubclass(card.row, ResolvedInProject))
#: The targets of object types that are in a project directly, and in no warehouse.
IN_PROJECTS: Final = tuple(_target(card, card.in_bodies) for card in _CARDS_IN_PROJECTS)
#: The same targets for the permissions API, whose paths contain the object type.
IN_PROJECTS_BY_TYPE: Final = tuple(_target(card, card.type.value.replace("_", "-")) for card in _CARDS_IN_PROJECTS)

TABULARS: Final = (TABLE, VIEW, GENERIC_TABLE)
#: These targets also find dropped tables that can be restored, because the grants of a table are restored with the
#: table.
KEPT_TABULARS: Final = (
    replace(TABLE, on=InPathDropped[TableRef]),
    replace(VIEW, on=InPathDropped[ViewRef]),
    replace(GENERIC_TABLE, on=InPathDropped[GenericTableRef]),
)


def declare_for_each(
    base: type[Family], targets: Iterable[Target], *, name: str, endpoint: str, doc: str, **members: object
) -> tuple[type[Family], ...]:
    """Declare one operation for each target, and return the classes.

    `{noun}` in `name`, `{path}` in `endpoint` and `{words}` in `doc` are replaced by those of the target. `members` are
    class attributes of all the classes. Raises TypeError for an invalid declaration.
    """
    return tuple(_declare(base, each, name, endpoint, doc, members) for each in targets)


def _declare(
    base: type[Family], target: Target, name: str, endpoint: str, doc: str, members: dict[str, object]
) -> type[Family]:
    made: type[Family] = type(
        name.format(noun=target.noun),
        (base,),
        {
            **members,
            "__annotations__": {"on": target.on},
            "__doc__": doc.format(words=target.words),
            "__module__": base.__module__,
            "endpoint": endpoint.format(path=target.path),
        },
    )
    return dataclass(frozen=True)(made)
