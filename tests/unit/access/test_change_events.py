# SPDX-License-Identifier: Apache-2.0
"""Events of changes: every change is announced or says why not, with the reference system's names and no secret."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any
from uuid import UUID

import msgspec
import pytest

from gateway.access.actor import Actor, ActorKind
from gateway.access.door.request_context import RequestContext
from gateway.access.events.change_event import (
    MAX_CONTENTS,
    ChangeEvent,
    DroppedObject,
    EventData,
    EventPerFurtherChange,
    FurtherChanges,
    FurtherEvent,
    MovedObject,
    NoEvent,
)
from gateway.access.events.event_building import events_of
from gateway.access.nouns.refs import WarehouseRef
from gateway.access.operation import OPERATIONS, ChangeOperation, Operation
from gateway.access.operations.namespaces import CreateNamespace, DropNamespace, MoveNamespace
from gateway.access.operations.registrations import UnregisterTable
from gateway.access.operations.server import Bootstrap
from gateway.access.operations.tables import CommitTable, CommitTransaction, CreateTable, DropTable, ReportMetrics
from gateway.access.operations.tasks import ExpireDeleted
from gateway.access.operations.warehouses import (
    CreateWarehouse,
    UpdateWarehouseStorage,
    UpdateWarehouseStorageCredential,
)
from gateway.iceberg.wire import CreateNamespaceRequest
from tests.support.door import world
from tests.support.door.change_events import CHANGES, NEW, events_of_example
from tests.support.door.examples import EXAMPLES
from tests.support.door.world import DoorFixture, request_context

#: The types of the reference system.
REFERENCE = {
    "createTable", "registerTable", "updateTable", "dropTable", "renameTable", "createView", "updateView", "dropView",
    "renameView", "createGenericTable", "dropGenericTable", "renameGenericTable", "undropTabulars",
}  # fmt: skip


def _example(kind: type[Operation]) -> Any:
    return next(example.operation for example in EXAMPLES if type(example.operation) is kind)


@pytest.mark.parametrize("operation", CHANGES, ids=lambda each: type(each).__name__)
async def test_each_change_names_its_object(operation: ChangeOperation) -> None:
    events = await events_of_example(operation, **NEW)
    assert bool(events) is not isinstance(operation.event, NoEvent | EventPerFurtherChange)
    for event in events:
        assert re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", event.type)
        assert event.key and event.key == event.attributes["objectid"]
        assert event.attributes["objecttype"]
        # The attribute names that CloudEvents allows.
        assert all(re.fullmatch(r"[a-z0-9]{1,20}", name) and value for name, value in event.attributes.items())
        assert json.loads(event.attributes["actor"]) == {"type": "principal", "principal": world.ALICE.id}
        json.loads(event.data)


@pytest.mark.parametrize("operation", CHANGES, ids=lambda each: type(each).__name__)
async def test_names_in_events_are_texts_of_the_request_or_the_rows(operation: ChangeOperation) -> None:
    """A representation of a Python value is no name."""
    for event in await events_of_example(operation, **NEW):
        for attribute in ("name", "namespace"):
            found = event.attributes.get(attribute, "")
            assert not re.search(r"[(){}\[\]'\"]|^None$|=", found), (event.type, attribute, found)


async def test_new_namespace_is_announced_with_its_levels_and_without_a_name() -> None:
    nested = dataclasses.replace(
        _example(CreateNamespace), request=CreateNamespaceRequest(namespace=("sales", "new"), properties={})
    )
    (event,) = await events_of_example(nested, namespace_id=NEW["namespace_id"])
    assert (event.attributes["namespace"], "name" in event.attributes) == ("sales.new", False)


async def test_all_events_of_the_reference_exist() -> None:
    types = {event.type for operation in CHANGES for event in await events_of_example(operation, **NEW)}
    assert types >= REFERENCE


def test_only_bodies_of_the_catalog_protocol_are_sent() -> None:
    """Bodies of the management API contain credentials of storages."""
    bodies = [
        each
        for each in OPERATIONS.values()
        if issubclass(each, ChangeOperation)
        and isinstance(each.event, ChangeEvent)
        and each.event.data is EventData.BODY
    ]
    assert {each.paths()[0].split("/")[1] for each in bodies} == {"catalog", "lakekeeper"}


PLANTED = "planted-secret"


def _planted(value: Any) -> Any:
    """Return a body with the secret in every document, and in every value of a mapping such as properties."""
    if isinstance(value, msgspec.Raw):
        return msgspec.Raw(json.dumps({"secret-access-key": PLANTED}).encode())
    if isinstance(value, dict):
        return {name: _planted(each) for name, each in value.items()} | {"password": PLANTED}
    if isinstance(value, msgspec.Struct):
        fields = {name: _planted(getattr(value, name)) for name in value.__struct_fields__}
        return type(value)(**fields)
    return [_planted(each) for each in value] if isinstance(value, list) else value


BODIES_LEFT_OUT = [
    each
    for each in CHANGES
    if isinstance(each.event, ChangeEvent)
    and each.event.data is not EventData.BODY
    and isinstance(getattr(each, "request", None), msgspec.Struct)
]


@pytest.mark.parametrize("operation", BODIES_LEFT_OUT, ids=lambda each: type(each).__name__)
async def test_no_event_contains_a_document_or_property_of_a_body(operation: Any) -> None:
    """Storage credentials are documents inside of bodies, and values of properties may be passwords."""
    planted = dataclasses.replace(operation, request=_planted(operation.request))
    for event in await events_of_example(planted, **NEW):
        assert PLANTED not in event.data.decode() + json.dumps(dict(event.attributes))


def test_the_secret_is_planted_into_storage_credentials() -> None:
    kinds = {type(each) for each in BODIES_LEFT_OUT}
    assert kinds >= {CreateWarehouse, UpdateWarehouseStorage, UpdateWarehouseStorageCredential, CreateNamespace}
    planted = _planted(_example(CreateWarehouse).request)
    assert PLANTED in bytes(planted.storage_credential).decode()
    assert PLANTED in _planted(_example(CreateNamespace).request).properties.values()


async def test_a_created_table_has_the_id_of_the_audit_record() -> None:
    (event,) = await events_of_example(_example(CreateTable), table_id=NEW["table_id"])
    assert event.key == NEW["table_id"]
    assert event.attributes["tabularid"] == NEW["table_id"]
    assert event.attributes["namespace"] == "sales.eu"
    assert event.attributes["prefix"] == event.attributes["warehouseid"] == str(world.WAREHOUSE_ID)
    assert json.loads(event.data)["name"] == event.attributes["name"]


async def test_a_drop_and_a_removal_from_the_catalog_have_one_type_and_no_data() -> None:
    for operation in (DropTable(world.TABLE), UnregisterTable(world.TABLE)):
        (event,) = await events_of_example(operation)
        assert (event.type, event.data, event.key) == ("dropTable", b"null", str(world.TABLE_ID))


async def test_a_transaction_has_one_numbered_event_per_table() -> None:
    operation = _example(CommitTransaction)
    events = await events_of_example(operation, table_id=NEW["table_id"])
    assert [event.type for event in events] == ["updateTable"] * len(operation.parts())
    assert [event.attributes["sequencenumber"] for event in events] == [str(n) for n in range(len(events))]
    assert {event.attributes["numevents"] for event in events} == {str(len(events))}


async def test_a_new_table_of_a_transaction_gets_its_own_id() -> None:
    named = msgspec.json.decode(
        json.dumps(
            {
                "table-changes": [
                    {"identifier": {"namespace": ["sales", "eu"], "name": name}, "requirements": needs, "updates": []}
                    for name, needs in [
                        ("first", [{"type": "assert-create"}]),
                        ("orders", []),
                        ("second", [{"type": "assert-create"}]),
                    ]
                ]
            }
        ),
        type=type(_example(CommitTransaction).request),
    )
    events = await events_of_example(CommitTransaction(world.WAREHOUSE_ID, named), table_id="id-1,id-2")
    assert [(event.attributes["name"], event.key) for event in events] == [
        ("first", "id-1"), ("orders", str(world.TABLE_ID)), ("second", "id-2"),
    ]  # fmt: skip


async def test_the_events_of_one_change_have_the_same_ids_each_time() -> None:
    """A transaction is repeated if its outcome is unknown. Other ids would announce its change twice."""
    permit = await DoorFixture().door.admit(request_context(), _example(CommitTransaction))
    first, second = (events_of(permit), events_of(permit))
    assert [event.id for event in first] == [event.id for event in second]
    assert len({event.id for event in first}) == len(first)
    assert {(event.id.version, event.id.variant) for event in first} == {(7, "specified in RFC 4122")}


async def test_data_that_a_broker_would_refuse_are_left_out() -> None:
    operation = _example(CommitTable)
    large = msgspec.json.decode(
        json.dumps({"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b" * 2_000_000}}]}),
        type=type(operation.request),
    )
    (event,) = await events_of_example(dataclasses.replace(operation, request=large))
    assert event.data == b"null"
    assert int(event.attributes["dataleftout"]) > 2_000_000


async def test_the_end_of_a_dropped_table_is_announced_only_if_it_was_removed() -> None:
    context = RequestContext(actor=Actor(kind=ActorKind.SYSTEM, id="system~soft_deletion"), request_id="task")
    operation = ExpireDeleted(WarehouseRef(world.WAREHOUSE_ID), world.TABLE_ID)
    permit = await DoorFixture().door.admit(context, operation)
    assert events_of(permit) == ()
    permit.pending_audit.add_details(table_id=str(world.TABLE_ID), kind="view")
    (event,) = events_of(permit)
    assert (event.type, event.key, event.attributes["tabulartype"]) == (
        "expireDeletedTabular", str(world.TABLE_ID), "view",
    )  # fmt: skip


async def test_the_contents_of_a_large_namespace_are_counted_and_not_announced() -> None:
    permit = await DoorFixture().door.admit(request_context(), _example(DropNamespace))
    dropped = [
        DroppedObject("view", str(UUID(int=number)), ("sales",), "v", ends_deletion=number == 0)
        for number in range(MAX_CONTENTS + 1)
    ]
    permit.pending_audit.further_changes = lambda: FurtherChanges.limited(dropped[:2])
    events = events_of(permit)
    assert [event.type for event in events] == ["expireDeletedTabular", "dropView", "dropNamespace"]
    assert all(event.attributes["warehouseid"] == str(world.WAREHOUSE_ID) for event in events)
    permit.pending_audit.further_changes = lambda: FurtherChanges.limited(dropped[1:])
    assert len(events_of(permit)) == MAX_CONTENTS + 1
    permit.pending_audit.further_changes = lambda: FurtherChanges.limited(dropped)
    (event,) = events_of(permit)
    assert (event.type, event.attributes["contentsleftout"]) == ("dropNamespace", str(MAX_CONTENTS + 1))


async def test_contents_of_a_moved_namespace_are_announced_after_it_with_both_names() -> None:
    """A consumer that keeps tables by name would otherwise look for them below the old namespace."""
    permit = await DoorFixture().door.admit(request_context(), _example(MoveNamespace))
    inside = [
        MovedObject("namespace", str(UUID(int=1)), ("sales", "eu", "x"), ("sold", "x")),
        MovedObject("table", str(UUID(int=2)), ("sales", "eu"), ("sold",), "t"),
        MovedObject("view", str(UUID(int=3)), ("sales", "eu"), ("sold",), "v"),
    ]
    permit.pending_audit.further_changes = lambda: FurtherChanges.limited(inside)
    events = events_of(permit)
    assert [each.type for each in events] == ["moveNamespace", "moveNamespace", "renameTable", "renameView"]
    assert {each.attributes["warehouseid"] for each in events} == {str(world.WAREHOUSE_ID)}
    assert json.loads(events[1].data) == {"destination": ["sold", "x"]}
    for event, name in zip(events[2:], "tv", strict=True):
        assert (event.attributes["namespace"], event.attributes["name"]) == ("sales.eu", name)
        assert json.loads(event.data) == {
            "source": {"namespace": ["sales", "eu"], "name": name},
            "destination": {"namespace": ["sold"], "name": name},
        }


async def test_an_operation_that_states_no_change_announces_those_of_its_use_case() -> None:
    permit = await DoorFixture().door.admit(request_context(), _example(Bootstrap))
    assert events_of(permit) == ()
    facts = {"writes": ("admin:user:oidc~alice",), "deletes": (), "write_ends": ("",)}
    granted = FurtherEvent(type="changeGrants", kind="server", id="s", data=facts)
    permit.pending_audit.further_changes = lambda: FurtherChanges([granted])
    (event,) = events_of(permit)
    assert (event.type, event.key, event.attributes["numevents"]) == ("changeGrants", "s", "1")
    assert json.loads(event.data)["writes"] == ["admin:user:oidc~alice"]


async def test_a_repeated_change_and_a_report_announce_nothing() -> None:
    assert await events_of_example(_example(CreateTable), table_id=NEW["table_id"], repeated="true") == ()
    assert await events_of_example(_example(ReportMetrics)) == ()


def test_a_change_without_a_declaration_cannot_be_written() -> None:
    with pytest.raises(TypeError, match="must declare its event"):
        type(
            "SilentChange",
            (ChangeOperation,),
            {"endpoint": "POST /catalog/v1/silent", "demands": lambda self: (), "__module__": __name__},
        )
