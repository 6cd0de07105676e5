# SPDX-License-Identifier: Apache-2.0
"""Build the events of a committed change, in the form of Lakekeeper's CloudEvents.

The names of extension attributes are Lakekeeper's without hyphens: CloudEvents allows lower-case letters and digits
only (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md#naming-conventions).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

import msgspec

from gateway.access.actor import Actor, ActorKind
from gateway.access.audit.audit_record import IssuedCredential
from gateway.access.door.permit import Permit
from gateway.access.events.change_event import (
    ChangeEvent,
    DroppedObject,
    EventData,
    EventPerFurtherChange,
    EventPerPart,
    EventPerTarget,
    FurtherChanges,
    FurtherEvent,
    MovedObject,
    NoEvent,
    type_of,
)
from gateway.access.events.event_redaction import without_secrets
from gateway.access.nouns.card import Resolved
from gateway.access.nouns.resolved import (
    Resolution,
    ResolvedGenericTable,
    ResolvedNamespace,
    ResolvedTable,
    ResolvedView,
    warehouse_of,
)
from gateway.access.operation import ChangeOperation, Operation, SystemTask
from gateway.iceberg.identifiers import Namespace
from gateway.iceberg.wire import RenameRequest, TableIdentifierBody

_TABULARS: Final = ("table", "view", "generic_table")
_NULL: Final = b"null"

MAX_DATA_BYTES: Final = 524_288
"""Limit of the data of an event. NATS and Kafka refuse messages of more than 1 MiB unless they are configured."""


_DROPS: Final = {
    "namespace": "dropNamespace",
    "table": "dropTable",
    "view": "dropView",
    "generic_table": "dropGenericTable",
}
_RENAMES: Final = {"table": "renameTable", "view": "renameView", "generic_table": "renameGenericTable"}

CREDENTIALS_VENDED: Final = "vendCredentials"
"""The type of the event of a storage credential."""


POLICY_LOST: Final = "loseDataPolicy"
"""The type of the event of a name that a data policy does not restrict any more as it did."""


BREAK_GLASS: Final = "breakGlassActivated"
"""The type of the alert that a user took rights by break-glass."""


class IssuedData(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The data of the event of a storage credential. Its fields are those of `IssuedCredential`."""

    level: str
    prefix: str
    provider: str
    session_name: str
    engine: str | None
    view_owner: str | None
    expires_at: datetime


class NewEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event to be written in the transaction of its change. `key` is the id of the changed object."""

    id: UUID
    type: str
    key: str
    attributes: Mapping[str, str]
    data: bytes


def events_of(permit: Permit[Operation]) -> tuple[NewEvent, ...]:
    """Return the events of the change of `permit`.

    Return none if its operation declares none, or if it changed nothing. Ids of new objects are read from the audit
    record, so call this after the use case has written everything.
    """
    operation = permit.operation
    detail = permit.pending_audit.record.detail
    if not isinstance(operation, (ChangeOperation, SystemTask)) or detail.get("repeated") == "true":
        return ()
    common = {"actor": _actor(permit.actor), "traceid": permit.request_id}
    drafts = list(_drafts(operation, permit.resolution, detail))
    if permit.pending_audit.further_changes is not None:
        drafts = _with_further(drafts, permit.pending_audit.further_changes())
    return tuple(
        new_event(event_id(permit.pending_audit.record.id, number), draft, common, len(drafts), number)
        for number, draft in enumerate(drafts)
    )


def event_of_issued(issued: IssuedCredential) -> NewEvent:
    """Return the event of a storage credential that a principal received. It contains no part of the credential.

    The event id is the same for every request that received this credential from the cache, so only the first event is
    written.
    """
    where = {
        "objecttype": issued.kind,
        "objectid": str(issued.table_id),
        **tabular_of(issued.kind, str(issued.table_id)),
    }
    where |= {"projectid": issued.project_id, "warehouseid": str(issued.warehouse_id)}
    where["prefix"] = where["warehouseid"]
    data = IssuedData(
        level=issued.level,
        prefix=issued.prefix,
        provider=issued.provider,
        session_name=issued.session_name,
        engine=issued.engine,
        view_owner=issued.view_owner,
        expires_at=issued.expires_at,
    )
    common = {"actor": described_actor(issued.principal, issued.assumed_role), "traceid": issued.request_id}
    return new_event(event_id(issued.id, 0), (CREDENTIALS_VENDED, where, msgspec.json.encode(data)), common, 1, 0)


def _with_further(drafts: Sequence[Draft], further: FurtherChanges) -> list[Draft]:
    """Return all events of a change in order.

    The events of dropped contents precede that of their namespace; those of moved contents follow it.
    """
    place = {name: drafts[-1][1].get(name, "") for name in ("projectid", "warehouseid", "prefix")} if drafts else {}
    if further.left_out:
        drafts[-1][1]["contentsleftout"] = str(further.left_out)
    before: list[Draft] = []
    after: list[Draft] = []
    for each in further.changes:
        match each:
            case DroppedObject():
                before.append(_of_dropped(each, place))
            case MovedObject():
                after.append(_of_moved(each, place))
            case FurtherEvent():
                after.append(_of_further(each))
    return [*before, *drafts, *after]


def _of_moved(moved: MovedObject, place: Mapping[str, str]) -> Draft:
    """Return the event of an object in a moved namespace.

    It is the event that renaming or moving the object itself would have.
    """
    attributes = {"objecttype": moved.kind, "objectid": moved.id, **place}
    attributes |= {"namespace": ".".join(moved.namespace), "name": moved.name} | tabular_of(moved.kind, moved.id)
    if moved.kind == "namespace":
        return "moveNamespace", attributes, msgspec.json.encode({"destination": moved.destination})
    before, after = (TableIdentifierBody(levels, moved.name) for levels in (moved.namespace, moved.destination))
    return _RENAMES[moved.kind], attributes, msgspec.json.encode(RenameRequest(source=before, destination=after))


def _of_further(further: FurtherEvent) -> Draft:
    attributes = {"objecttype": further.kind, "objectid": further.id, "projectid": further.project_id}
    attributes |= {"warehouseid": further.warehouse_id, "prefix": further.warehouse_id, "name": further.name}
    return further.type, attributes | tabular_of(further.kind, further.id), msgspec.json.encode(further.data)


def _of_dropped(dropped: DroppedObject, place: Mapping[str, str]) -> Draft:
    attributes = {"objecttype": dropped.kind, "objectid": dropped.id, **place}
    attributes |= {"namespace": ".".join(dropped.namespace), "name": dropped.name}
    type = "expireDeletedTabular" if dropped.ends_deletion else _DROPS[dropped.kind]
    return type, attributes | tabular_of(dropped.kind, dropped.id), _NULL


Draft = tuple[str, dict[str, str], bytes]
"""(type, attributes of the object, data) of an event."""


def new_event(id: UUID, draft: Draft, common: Mapping[str, str], count: int = 1, number: int = 0) -> NewEvent:
    """Return event `number` of `count` events of a change, with the attributes `common` to all of them."""
    type, of_object, data = draft
    attributes = {name: value for name, value in of_object.items() if value}
    attributes |= {**common, "numevents": str(count), "sequencenumber": str(number)}
    if len(data) > MAX_DATA_BYTES:
        attributes["dataleftout"] = str(len(data))
        data = _NULL
    return NewEvent(id=id, type=type, key=of_object["objectid"], attributes=attributes, data=data)


def event_id(record: UUID, number: int) -> UUID:
    """Return the UUIDv7 of event `number` of the change with this audit record. Equal arguments give equal ids.

    So a transaction that is repeated because its outcome is unknown writes no event twice. The time in the id is that
    of the audit record, and the rest is a digest. Source: RFC 9562, section 5.7.
    """
    digest = hashlib.sha256(record.bytes + number.to_bytes(4, "big")).digest()
    octets = bytearray(record.bytes[:6] + digest[:10])
    octets[6] = octets[6] & 0x0F | 0x70
    octets[8] = octets[8] & 0x3F | 0x80
    return UUID(bytes=bytes(octets))


def _drafts(
    operation: ChangeOperation | SystemTask, resolution: Resolution, detail: Mapping[str, str]
) -> Iterator[Draft]:
    declared, name = operation.event, type(operation).__name__
    match declared:
        case NoEvent() | EventPerFurtherChange():
            return
        case ChangeEvent():
            new = detail.get(declared.new, "") if declared.new else ""
            if declared.kind_in:
                declared = replace(declared, kind=detail.get(declared.kind_in, ""))
            if replaced := detail.get(declared.replaces):
                yield _draft(operation, replace(declared, type="dropTable"), resolution, replaced)
            # A task that finds that its object was restored or removed changes nothing, and has no event.
            if isinstance(operation, ChangeOperation) or new:
                yield _draft(operation, declared, resolution, new)
        case EventPerTarget(targets=field):
            for ref in getattr(operation, field):
                row = resolution.rows[ref]
                yield type_of(declared.type, name), _of_row(row), _NULL
        case EventPerPart():
            # A transaction records the ids of the tables it creates in the order of the request.
            created = iter(detail.get("table_id", "").split(","))
            for part in operation.parts():
                if isinstance(part, ChangeOperation) and isinstance(part.event, ChangeEvent):
                    new = next(created, "") if part.event.new else ""
                    yield _draft(part, part.event, resolution, new)


def _draft(operation: ChangeOperation | SystemTask, declared: ChangeEvent, resolution: Resolution, new: str) -> Draft:
    on = attrgetter(declared.on)(operation) if declared.on else None
    row = None if on is None or isinstance(on, (str, UUID)) else resolution.get(on)
    if declared.new:
        attributes = _of_new(operation, declared, row, new)
    elif row is not None:
        attributes = _of_row(row)
    else:
        attributes = {"objecttype": declared.kind, "objectid": _id_of(on)}
    return (
        type_of(declared.type, type(operation).__name__),
        attributes,
        without_secrets(_data(operation, declared.data)),
    )


def _data(operation: ChangeOperation | SystemTask, data: EventData) -> bytes:
    match data:
        case EventData.NOTHING:
            return _NULL
        case EventData.BODY:
            return msgspec.json.encode(operation.event_body() if isinstance(operation, ChangeOperation) else None)
        case EventData.FACTS:
            return msgspec.json.encode(operation.facts())


def _id_of(on: object) -> str:
    """Return the id of an object without a row: the id itself, or that of a reference to a user, whose record may not
    exist.
    """
    return str(getattr(on, "user_id", on))


def _of_new(operation: Operation, declared: ChangeEvent, parent: Resolved | None, id: str) -> dict[str, str]:
    kind = declared.kind or declared.new.removesuffix("_id")
    named = attrgetter(declared.named)(operation) if declared.named else ""
    attributes = {"objecttype": kind, "objectid": id, **_place(parent)}
    match named:
        case Namespace(levels=levels):
            return attributes | {"namespace": ".".join(levels)}
        case str():
            return attributes | {"name": named} | tabular_of(kind, id)
        case _:
            raise TypeError(f"{declared.named} of {operation.name()} is neither a name nor a namespace")


def _of_row(row: Resolved) -> dict[str, str]:
    kind, id = row.key.type.value, row.key.id
    attributes = {"objecttype": kind, "objectid": id, **_place(row)}
    if isinstance(row, (ResolvedTable, ResolvedView, ResolvedGenericTable)):
        return attributes | {"name": row.identifier.name} | tabular_of(kind, id)
    name: Any = getattr(row, "name", "")
    return attributes if isinstance(row, ResolvedNamespace) else attributes | {"name": name}


def _place(row: Resolved | None) -> dict[str, str]:
    """Return the event attributes of the project, warehouse and namespace that contain the row, or that the row is."""
    warehouse = warehouse_of(row)
    project = None if row is None else row.in_project
    place = {"projectid": project or "", "warehouseid": "" if warehouse is None else str(warehouse.id)}
    place["prefix"] = place["warehouseid"]
    if isinstance(row, ResolvedNamespace):
        place["namespace"] = ".".join(row.namespace.levels)
    elif isinstance(row, (ResolvedTable, ResolvedView, ResolvedGenericTable)):
        place["namespace"] = ".".join(row.namespace.namespace.levels)
    return place


def tabular_of(kind: str, id: str) -> dict[str, str]:
    """Return the event attributes of a table, view or generic table. The result is empty for other types."""
    return {"tabulartype": kind, "tabularid": id} if kind in _TABULARS else {}


def _actor(actor: Actor) -> str:
    """Return the caller as JSON, in the reference system's form."""
    if actor.kind is ActorKind.ANONYMOUS:
        return '{"type":"anonymous"}'
    return described_actor(actor.id, actor.assumed_role)


def described_actor(principal: str, assumed_role: UUID | None = None) -> str:
    """Return a principal as JSON, in the reference system's form."""
    described = {"type": "principal", "principal": principal}
    if assumed_role is not None:
        described = {"type": "role", "principal": principal, "assumed-role": str(assumed_role)}
    return msgspec.json.encode(described).decode()
