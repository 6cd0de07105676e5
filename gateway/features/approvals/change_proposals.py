# SPDX-License-Identifier: Apache-2.0
"""Describe changes for the verifiers, which approve or reject a change before it is made.

The description is made from the permitted operation and the rows of the changed objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.resolved import (
    ResolvedGenericTable,
    ResolvedNamespace,
    ResolvedTable,
    ResolvedView,
    ResolvedWarehouse,
)
from gateway.access.operations.deletion import UndropTabulars
from gateway.access.operations.generic_tables import (
    AdoptGenericTable,
    CreateGenericTable,
    DropGenericTable,
    RenameGenericTable,
)
from gateway.access.operations.namespaces import (
    CreateNamespace,
    DropNamespace,
    MoveNamespace,
    UpdateNamespaceProperties,
)
from gateway.access.operations.registrations import AdoptTable, AdoptView, RegisterTable, RegisterView, UnregisterTable
from gateway.access.operations.tables import (
    CommitTable,
    CommitTableCreation,
    CommitTransaction,
    CreateTable,
    DropTable,
    RenameTable,
    RenameView,
)
from gateway.access.operations.views import CommitView, CreateView, DropView
from gateway.access.operations.warehouses import DeleteWarehouse, RenameWarehouse
from gateway.verification.port import ChangeKind, ProposedChange

Tabular = ResolvedTable | ResolvedView | ResolvedGenericTable
Changed = Tabular | ResolvedNamespace | ResolvedWarehouse
ChangingPermit: TypeAlias = Permit[
    AdoptGenericTable
    | AdoptTable
    | AdoptView
    | CommitTable
    | CommitTableCreation
    | CommitTransaction
    | CommitView
    | CreateGenericTable
    | CreateNamespace
    | CreateTable
    | CreateView
    | DeleteWarehouse
    | DropGenericTable
    | DropNamespace
    | DropTable
    | DropView
    | MoveNamespace
    | RegisterTable
    | RegisterView
    | RenameGenericTable
    | RenameTable
    | RenameView
    | RenameWarehouse
    | UndropTabulars
    | UnregisterTable
    | UpdateNamespaceProperties
]
"""The permits of the changes that verifiers judge."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed change, and the object `on` that its ticket is about: the changed object, or the container of a new
    one.

    `into` is the new container of a moved object. A second ticket is about it, for the approvers of that container.
    """

    change: ProposedChange
    on: ObjectKey
    into: ObjectKey | None = None

    @property
    def tickets_on(self) -> tuple[ObjectKey, ...]:
        """Return the objects whose approvers decide about the change, each by a ticket."""
        return (self.on,) if self.into is None else (self.on, self.into)

    @property
    def text(self) -> str:
        """Return the change as text: `drop of the table a.b`."""
        kind = self.change.kind.value.replace("_", " ")
        return f"{kind} of the {self.change.object_type} {self.name}"

    @property
    def name(self) -> str:
        """Return the dotted name of the changed object."""
        name = self.change.name
        return ".".join((*self.change.namespace, *(() if name is None else (name,))))


def of_object(
    permit: ChangingPermit,
    kind: ChangeKind,
    row: Changed,
    *,
    updates: Sequence[object] = (),
    before: bytes | None = None,
    after: bytes | None = None,
    properties: Mapping[str, str] | None = None,
    destination: tuple[str, ...] | None = None,
    into: ObjectKey | None = None,
) -> Proposal:
    """Return the proposal of a change of an existing object. `updates` are structs of the REST protocol, or
    mappings.
    """
    warehouse, levels, name = _place_of(row)
    change = _proposed(permit, kind, row.key.type, warehouse, levels, name)
    return Proposal(
        msgspec.structs.replace(
            change,
            object_id=row.key.id,
            updates=_plain(updates),
            before=None if before is None else msgspec.Raw(before),
            after=None if after is None else msgspec.Raw(after),
            properties=properties or {},
            destination=destination,
        ),
        row.key,
        into,
    )


def of_new(
    permit: ChangingPermit,
    type: ObjectType,
    container: ResolvedNamespace | ResolvedWarehouse,
    name: str | None,
    *,
    levels: tuple[str, ...],
    updates: Sequence[object] = (),
    after: bytes | None = None,
    properties: Mapping[str, str] | None = None,
    location: str | None = None,
) -> Proposal:
    """Return the proposal of a creation in `container`. `levels` is the namespace of the new object. `name` is None for
    a new namespace. `location` is the location in the request, None for the default.
    """
    warehouse = container if isinstance(container, ResolvedWarehouse) else container.warehouse
    change = _proposed(permit, ChangeKind.CREATE, type, warehouse, levels, name)
    return Proposal(
        msgspec.structs.replace(
            change,
            updates=_plain((*updates, *_chosen(location))),
            after=None if after is None else msgspec.Raw(after),
            properties=properties or {},
        ),
        container.key,
    )


def creation_update(permit: Permit[CreateGenericTable | AdoptGenericTable]) -> Mapping[str, object]:
    """Return the parts of a request for a new generic table that its document lacks: the format and the location."""
    request = permit.operation.request
    return {
        "action": "create-generic-table",
        "adopt": isinstance(permit.operation, AdoptGenericTable),
        "format": request.format,
        "base-location": request.base_location,
        "doc": request.doc,
        "schema": request.schema,
    }


def _chosen(location: str | None) -> tuple[Mapping[str, object], ...]:
    """Return the update for a location in the request, so that the approval is not valid for another one. None: no
    update.
    """
    return () if location is None else ({"action": "choose-location", "location": location},)


def drop_updates(permit: ChangingPermit) -> tuple[Mapping[str, object], ...]:
    """Return the update that describes how an object is dropped: with or without its files, with `force` and so on.

    Without it, the approval of a drop that can be undone would be valid for a permanent deletion too.
    """
    match permit.operation:
        case UnregisterTable():
            return ({"action": "unregister"},)
        case RegisterTable() | AdoptTable() as overwriting:
            return ({"action": "overwrite", "metadata-location": overwriting.request.metadata_location},)
        case dropping:
            return ({"action": "drop", **dropping.facts()},)


def _place_of(row: Changed) -> tuple[ResolvedWarehouse, tuple[str, ...], str | None]:
    """Return (warehouse of an object, levels of its namespace, its name). The name is None for a namespace."""
    match row:
        case ResolvedWarehouse():
            return row, (), row.name
        case ResolvedNamespace():
            return row.warehouse, row.namespace.levels, None
        case _:
            return row.warehouse, row.namespace.namespace.levels, row.identifier.name


def _proposed(
    permit: ChangingPermit,
    kind: ChangeKind,
    type: ObjectType,
    warehouse: ResolvedWarehouse,
    levels: tuple[str, ...],
    name: str | None,
) -> ProposedChange:
    return ProposedChange(
        kind=kind,
        object_type=type.value,
        object_id=None,
        warehouse_id=str(warehouse.id),
        warehouse_name=warehouse.name,
        namespace=levels,
        name=name,
        principal=permit.actor.id,
        request_id=permit.request_id,
    )


def _plain(updates: Sequence[object]) -> tuple[Mapping[str, Any], ...]:
    """Return the updates as JSON values, with the field names of the REST protocol."""
    return tuple(msgspec.json.decode(msgspec.json.encode(update)) for update in updates)
