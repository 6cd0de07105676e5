# SPDX-License-Identifier: Apache-2.0
"""Convert the object of an access request between a body, a reference and a row. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

import msgspec

from gateway.access.management_errors import AccessRequestInvalid
from gateway.access.nouns.card import Resolved, ResolvedInProject
from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.project import ProjectRef
from gateway.access.nouns.refs import (
    GenericTable,
    NamespaceIdRef,
    NamespaceRef,
    ObjectKey,
    ObjectType,
    Ref,
    Table,
    TabularRef,
    View,
    WarehouseRef,
)
from gateway.access.nouns.resolved import ResolvedGenericTable, ResolvedNamespace, ResolvedTable, ResolvedView
from gateway.access.operations.access_request_bodies import AccessObject, AccessRequestItem, CreateAccessRequestRequest
from gateway.access.operations.deletion import kept
from gateway.access.operations.grants import GrantedOn
from gateway.iceberg.identifiers import Namespace, TableIdentifier

_TABULARS: Final[Mapping[str, type[Any]]] = {"table": Table, "view": View, "generic-table": GenericTable}

_FORMS: Final = (
    "A project, warehouse, role, tag or data policy is given by its id, such as `project-id`. A namespace needs "
    "`warehouse-id` and `namespace-id` or `namespace`. A table, view or generic table needs `warehouse-id` and its "
    "id, or `namespace` and `name`."
)


def items_of(request: CreateAccessRequestRequest) -> tuple[AccessRequestItem, ...]:
    """Return the objects of a request with their privileges. Raises AccessRequestInvalid unless it has one form."""
    match request.object, request.privileges, request.items:
        case None, None, tuple() as items:
            return items
        case AccessObject() as on, tuple() as privileges, None:
            return (AccessRequestItem(on, privileges),)
    raise AccessRequestInvalid("A request needs `object` and `privileges`, or `items` instead of both.")


def parse_object(given: AccessObject) -> Ref:
    """Return the reference to the object in a body. Raises AccessRequestInvalid unless it has exactly one form."""
    present = {name for name in AccessObject.__struct_fields__ if name != "type" and getattr(given, name) is not None}
    own = f"{given.type.replace('-', '_')}_id"
    warehouse, tabular = given.warehouse_id, _TABULARS.get(given.type)
    id: UUID | None = getattr(given, own)
    if present == {own}:
        try:
            return stored_ref(ObjectKey(ObjectType(given.type.replace("-", "_")), str(id)), None)
        except LookupError:
            raise _wrong(given) from None
    if warehouse is None:
        raise _wrong(given)
    if id is not None and present == {"warehouse_id", own}:
        return NamespaceIdRef(id, warehouse) if tabular is None else TabularRef(tabular, warehouse, id)
    if given.namespace is None or present - {"name"} != {"warehouse_id", "namespace"}:
        raise _wrong(given)
    match tabular, given.name, Namespace(given.namespace):
        case None, None, namespace if given.type == "namespace":
            return NamespaceRef(warehouse, namespace)
        case type(), str() as name, namespace:
            return TabularRef(tabular, warehouse, TableIdentifier(namespace, name))
    raise _wrong(given)


def _wrong(given: AccessObject) -> AccessRequestInvalid:
    return AccessRequestInvalid(f"`object` does not name exactly one {given.type}. {_FORMS}")


def queried_object(type: str | None, id: str | None, warehouse_id: str | None) -> AccessObject:
    """Return the object that query parameters name by its id. Raises AccessRequestInvalid for an invalid value."""
    given = {"type": type, f"{type}-id": id} | ({} if warehouse_id is None else {"warehouse-id": warehouse_id})
    try:
        return msgspec.convert(given, AccessObject, strict=False)
    except msgspec.ValidationError:
        raise AccessRequestInvalid(
            "The query parameters `type` and `id`, and `warehouseId` for an object in a warehouse, must name an object."
        ) from None


def stored_ref(on: ObjectKey, warehouse_id: UUID | None) -> Ref:
    """Return the reference to a recorded object. It also finds a dropped table that can be restored.

    Raises LookupError for a column, the server and a user.
    """
    if on.type is ObjectType.PROJECT:
        return ProjectRef(on.id)
    if on.type is ObjectType.WAREHOUSE:
        return WarehouseRef(UUID(on.id))
    card = CARDS[on.type]
    if issubclass(card.row, ResolvedInProject):
        by_id: Callable[[UUID], Ref] = card.refs[0]
        return by_id(UUID(on.id))
    if warehouse_id is None:
        raise LookupError(f"the request for a {on.type} has no warehouse")
    if on.type is ObjectType.NAMESPACE:
        return NamespaceIdRef(UUID(on.id), warehouse_id)
    return kept(on.type, warehouse_id, UUID(on.id))


def object_answer(on: ObjectKey, project_id: str | None, warehouse_id: UUID | None) -> GrantedOn:
    """Return the object of a recorded request in the form of a response."""
    card = CARDS[on.type]
    ids: dict[str, Any] = dict.fromkeys(card.id_members, on.id)
    ids |= {"project_id": project_id, "warehouse_id": None if warehouse_id is None else str(warehouse_id)}
    return GrantedOn(type=card.in_bodies, **ids)


def name_of(row: Resolved) -> str:
    """Return the name of an object with the levels of its namespace."""
    match row:
        case ResolvedNamespace(namespace=namespace):
            return namespace.dotted
        case ResolvedTable() | ResolvedView() | ResolvedGenericTable():
            return ".".join((*row.namespace.namespace.levels, row.identifier.name))
        case _:
            return str(getattr(row, "name", row.key.id))
