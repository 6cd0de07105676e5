# SPDX-License-Identifier: Apache-2.0
"""Events of a running gateway: each request over HTTP announces what it changed, with the ids that the rows have."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import jsonschema_rs
import pytest

from gateway.access.events.event_building import NewEvent
from gateway.access.events.event_schema import SCHEMA_FILE
from tests.support.door.change_events import as_sent
from tests.support.load.kills import Killable
from tests.support.stack import generic_tables as generic
from tests.support.stack import namespace_moves as moves
from tests.support.stack import registrations, renames, roles, transactions, views, warehouses
from tests.support.stack import table_creation as tables
from tests.support.stack.access_requests import asked_together, decide
from tests.support.stack.lifecycle import end_now, soft_world, undrop, until
from tests.support.stack.world import SCHEMA, World, unique

pytestmark = pytest.mark.servers

SINK = {
    # Nothing listens there: the events wait.
    "EVENTS__SINKS__PARTNER__KIND": "webhook",
    "EVENTS__SINKS__PARTNER__URL": "http://127.0.0.1:9/",
    "EVENTS__SINKS__PARTNER__SECRET": "a signing secret of the tests",
    "EVENTS__CREDENTIALS_VENDED": "true",
}
MANAGEMENT = "/management/v1"
Sent = dict[str, Any]


@pytest.fixture(scope="module")
def world(stopped_gateway: Killable) -> Iterator[World]:
    with stopped_gateway.serving(**SINK) as world:
        yield world


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema_rs.validator_for(json.loads(SCHEMA_FILE.read_text()), validate_formats=True)


@pytest.fixture
def announced(world: World, validator: Any) -> Callable[[], list[Sent]]:
    """Return a function that returns the events since its last call, and validates each by the published schema."""
    (last,) = world.sql("select coalesce(max(sequence), 0) as sequence from events")
    place = [last["sequence"]]

    def read() -> list[Sent]:
        rows = world.sql("select * from events where sequence > $1 order by sequence", place[0])
        found = []
        for row in rows:
            place[0] = row["sequence"]
            event = NewEvent(
                id=UUID(str(row["id"])),
                type=row["type"],
                key=row["key"],
                attributes=json.loads(row["attributes"]),
                data=row["data"],
            )
            found.append(as_sent(event))
            validator.validate(found[-1])
            assert found[-1]["objectid"] == event.key
            waiting = world.sql("select sink from event_deliveries where sequence = $1", row["sequence"])
            assert [each["sink"] for each in waiting] == ["partner"]
        return found

    return read


def _summary(events: Sequence[Sent]) -> list[tuple[str, str]]:
    """Return (type, id of the object) of each event except those of credentials."""
    return [(each["type"], each["objectid"]) for each in events if each["type"] != "vendCredentials"]


def _succeeds(answer: Any) -> Any:
    assert answer.status_code in (200, 201, 204), answer.text
    return answer.json() if answer.content else None


def test_a_table_is_announced_from_creation_to_drop(world: World, announced: Callable[[], list[Sent]]) -> None:
    ns = world.namespace()
    table = world.table(ns)
    _succeeds(world.commit(world.admin, table.path, {"action": "set-properties", "updates": {"a": "b"}}))
    _succeeds(renames.rename(world.admin, world, "tables", (ns, table.name), (ns, "renamed")))
    protection = f"{MANAGEMENT}/warehouse/{world.warehouse}/table/{table.uuid}/protection"
    _succeeds(world.admin.post(protection, {"protected": True}))
    _succeeds(world.admin.post(protection, {"protected": False}))
    _succeeds(world.admin.delete(f"{world.root}/namespaces/{ns}/tables/renamed?purgeRequested=true"))
    events = announced()
    assert _summary(events) == [
        ("createNamespace", _id(world, ns)),
        *[(type, table.uuid) for type in ("createTable", "updateTable", "renameTable")],
        *[(type, table.uuid) for type in ("setProtection", "setProtection", "dropTable")],
    ]
    created, renamed = events[1], events[-4]
    assert created["namespace"] == ns and created["name"] == table.name
    assert (renamed["name"], renamed["data"]["destination"]["name"]) == (table.name, "renamed")


def test_a_staged_table_is_announced_when_it_is_staged_and_when_it_is_committed(
    world: World, announced: Callable[[], list[Sent]]
) -> None:
    ns = world.namespace()
    body = {"name": "staged", "schema": SCHEMA, "stage-create": True}
    staged = _succeeds(world.admin.post(f"{world.root}/namespaces/{ns}/tables", body))
    path = f"{world.root}/namespaces/{ns}/tables/staged"
    _succeeds(world.admin.post(path, tables.creation(staged["metadata"])))
    events = [each for each in announced() if each["type"] in ("createTable", "updateTable")]
    assert [(each["type"], each["name"]) for each in events] == [("createTable", "staged"), ("updateTable", "staged")]
    assert events[0]["data"]["stage-create"] is True
    assert {each["objectid"] for each in events} == {staged["metadata"]["table-uuid"]}


def test_a_transaction_numbers_its_tables_and_names_the_new_one(
    world: World, announced: Callable[[], list[Sent]]
) -> None:
    ns = world.namespace()
    table = world.table(ns)
    announced()
    set_property = {"action": "set-properties", "updates": {"a": "b"}}
    _succeeds(
        transactions.commit(
            world.admin, world, transactions.creation(ns, "new"), transactions.change(table, set_property)
        )
    )
    (row,) = world.sql("select id::text from tables where name = 'new' and namespace_id::text = $1", _id(world, ns))
    events = announced()
    assert _summary(events) == [("updateTable", row["id"]), ("updateTable", table.uuid)]
    assert [(each["numevents"], each["sequencenumber"]) for each in events] == [("2", "0"), ("2", "1")]


def test_registered_and_restored_tables_keep_their_ids(world: World, announced: Callable[[], list[Sent]]) -> None:
    ns = world.namespace()
    table = world.table(ns)
    location = world.admin.get(table.path).json()["metadata-location"]
    _succeeds(world.admin.post(f"{table.path}/unregister"))
    _succeeds(registrations.register(world.admin, world, ns, "again", location))
    events = announced()
    assert [type for type, _ in _summary(events)][1:] == ["createTable", "dropTable", "registerTable"]
    (row,) = world.sql("select id::text from tables where name = 'again' and namespace_id::text = $1", _id(world, ns))
    (registered,) = [each for each in events if each["type"] == "registerTable"]
    assert (registered["objectid"], registered.get("data")) == (row["id"], None)


def test_a_table_that_a_registration_replaces_is_announced_as_dropped(
    world: World, announced: Callable[[], list[Sent]]
) -> None:
    ns = world.namespace()
    table, replaced = world.table(ns), world.table(ns)
    location = world.admin.get(table.path).json()["metadata-location"]
    _succeeds(world.admin.post(f"{table.path}/unregister"))
    announced()
    _succeeds(registrations.register(world.admin, world, ns, replaced.name, location, overwrite=True))
    dropped, registered = [each for each in announced() if each["type"] != "vendCredentials"]
    assert (dropped["type"], dropped["objectid"], dropped["name"]) == ("dropTable", replaced.uuid, replaced.name)
    assert (registered["type"], registered["name"]) == ("registerTable", replaced.name)
    assert registered["objectid"] != replaced.uuid
    assert (dropped["numevents"], registered["sequencenumber"]) == ("2", "1")


def test_the_end_of_a_soft_deletion_is_announced(world: World, announced: Callable[[], list[Sent]]) -> None:
    soft = soft_world(world)
    ns = soft.namespace()
    kept, ended = soft.table(ns), soft.table(ns)
    for table in (kept, ended):
        _succeeds(soft.admin.delete(table.path))
    _succeeds(undrop(soft.admin, soft, ("table", kept.uuid)))
    end_now(soft, ended.uuid)
    events: list[Sent] = []

    def arrived() -> bool:
        events.extend(announced())
        return any(each["type"] == "expireDeletedTabular" for each in events)

    until(arrived, "the end of the soft deletion is announced")
    assert [
        each for each in _summary(events) if each[0] in ("dropTable", "undropTabulars", "expireDeletedTabular")
    ] == [
        ("dropTable", kept.uuid),
        ("dropTable", ended.uuid),
        ("undropTabulars", kept.uuid),
        ("expireDeletedTabular", ended.uuid),
    ]
    assert json.loads(events[-1]["actor"])["principal"].startswith("system~")


def test_views_and_generic_tables_are_announced(world: World, announced: Callable[[], list[Sent]]) -> None:
    ns = world.namespace()
    announced()
    view = views.create(world, ns)
    (row,) = world.sql("select id::text from tables where name = $1", view["name"])
    _succeeds(world.admin.post(view["path"], views.replace(view["metadata"]["view-uuid"], "select 2")))
    _succeeds(renames.rename(world.admin, world, "views", (ns, view["name"]), (ns, "seen")))
    _succeeds(world.admin.delete(f"{world.root}/namespaces/{ns}/views/seen"))
    made = generic.make(world, ns)
    _succeeds(generic.rename(world.admin, world, (ns, made["name"]), (ns, "other")))
    _succeeds(world.admin.delete(generic.at(world, ns, "other")))
    assert _summary(announced()) == [
        *[(type, row["id"]) for type in ("createView", "updateView", "renameView", "dropView")],
        *[(type, made["id"]) for type in ("createGenericTable", "renameGenericTable", "dropGenericTable")],
    ]


def test_namespaces_are_announced(world: World, announced: Callable[[], list[Sent]]) -> None:
    ns, other = world.namespace(), world.namespace()
    inner = moves.make(world, ns, "inner")
    assert [(each["type"], each["objectid"], each["namespace"], each.get("name")) for each in announced()] == [
        ("createNamespace", _id(world, ns), ns, None),
        ("createNamespace", _id(world, other), other, None),
        ("createNamespace", inner, f"{ns}.inner", None),
    ]
    path = f"{world.root}/namespaces/{ns}/properties"
    _succeeds(world.admin.post(path, {"updates": {"password": "planted-value"}}))
    _succeeds(moves.move(world.admin, world, inner, [other, "placed"]))
    managed = f"{MANAGEMENT}/permissions/namespace/{inner}/managed-access"
    _succeeds(world.admin.post(managed, {"managed-access": True}))
    _succeeds(world.admin.delete(f"{world.root}/namespaces/{other}%1Fplaced"))
    events = announced()
    assert _summary(events) == [
        ("updateNamespaceProperties", _id(world, ns)),
        *[(type, inner) for type in ("moveNamespace", "setManagedAccess", "dropNamespace")],
    ]
    # Values of properties may be secrets; only their names are announced.
    assert events[0]["data"]["updated_properties"] == ["password"]
    assert "planted-value" not in json.dumps(events)
    assert events[1]["data"]["destination"] == [other, "placed"]
    assert [(each["namespace"], each.get("name")) for each in events] == [
        (ns, None),
        (f"{ns}.inner", None),
        (f"{other}.placed", None),
        (f"{other}.placed", None),
    ]


def test_a_moved_namespace_announces_the_new_names_of_its_contents(
    world: World, announced: Callable[[], list[Sent]]
) -> None:
    ns, other = world.namespace(), world.namespace()
    outer = moves.make(world, ns, "outer")
    inner = moves.make(world, ns, "outer", "inner")
    view = views.create(world, f"{ns}%1Fouter%1Finner")
    moves.new_table(world, ns, "outer")
    staged = {"name": "staged", "schema": SCHEMA, "stage-create": True}
    _succeeds(world.admin.post(f"{world.root}/namespaces/{ns}%1Fouter/tables", staged))
    announced()
    _succeeds(moves.move(world.admin, world, outer, [other, "placed"]))
    events = announced()
    assert _summary(events)[:2] == [("moveNamespace", outer), ("moveNamespace", inner)]
    by_type = {each["type"]: each for each in events}
    assert set(by_type) == {"moveNamespace", "renameTable", "renameView"} and len(events) == 4
    renamed = by_type["renameView"]
    assert renamed["namespace"] == f"{ns}.outer.inner"
    assert renamed["data"] == {
        "source": {"namespace": [ns, "outer", "inner"], "name": view["name"]},
        "destination": {"namespace": [other, "placed", "inner"], "name": view["name"]},
    }
    assert by_type["renameTable"]["data"]["destination"]["namespace"] == [other, "placed"]
    assert [each["sequencenumber"] for each in events] == ["0", "1", "2", "3"]
    # A repeated move changes no name.
    _succeeds(moves.move(world.admin, world, outer, [other, "placed"]))
    assert _summary(announced()) == [("moveNamespace", outer)]


def test_a_namespace_that_is_dropped_with_its_contents_announces_each_of_them(
    world: World, announced: Callable[[], list[Sent]]
) -> None:
    ns = world.namespace()
    inner = moves.make(world, ns, "inner")
    table, made = world.table(ns), generic.make(world, ns)
    view = views.create(world, f"{ns}%1Finner")
    (seen,) = world.sql("select id::text from tables where name = $1", view["name"])
    staged = {"name": "staged", "schema": SCHEMA, "stage-create": True}
    _succeeds(world.admin.post(f"{world.root}/namespaces/{ns}/tables", staged))
    outer = _id(world, ns)
    announced()
    _succeeds(world.admin.delete(f"{world.root}/namespaces/{ns}?recursive=true"))
    events = announced()
    assert sorted(_summary(events)[:3]) == sorted(
        [("dropTable", table.uuid), ("dropGenericTable", made["id"]), ("dropView", seen["id"])]
    )
    assert _summary(events)[3:] == [("dropNamespace", inner), ("dropNamespace", outer)]
    by_id = {each["objectid"]: each for each in events}
    assert (by_id[seen["id"]]["namespace"], by_id[seen["id"]]["name"]) == (f"{ns}.inner", view["name"])
    assert {each["warehouseid"] for each in events} == {world.warehouse}
    assert {each["numevents"] for each in events} == {"5"}


def test_a_bootstrap_announces_its_grant(world: World, announced: Callable[[], list[Sent]]) -> None:
    """`lakegate reopen-bootstrap` makes another bootstrap possible at any time, and it gives all rights."""
    world.sql("update server set bootstrapped_at = null")
    announced()
    _succeeds(world.admin.post(f"{MANAGEMENT}/bootstrap", {"accept-terms-of-use": True}))
    (event,) = announced()
    assert (event["type"], event["objecttype"]) == ("changeGrants", "server")
    assert event["data"] == {"writes": ["admin:user:oidc~admin"], "deletes": [], "write_ends": [""]}


def test_management_is_announced_without_credentials(world: World, announced: Callable[[], list[Sent]]) -> None:
    secret = world.ready.s3.secret_key
    project = warehouses.project(world)
    _succeeds(world.admin.post(f"{MANAGEMENT}/project/rename", {"new-name": unique("p")}, headers=_in(project)))
    _succeeds(world.admin.delete(f"{MANAGEMENT}/project", headers=_in(project)))
    prefix = unique("wh")
    made = warehouses.make(world, **warehouses.stored_at(world, prefix))
    _succeeds(world.admin.post(f"{made.path}/rename", {"new-name": unique("w")}))
    storage = {**warehouses.stored_at(world, prefix), "storage-credential": warehouses.credential(world)}
    _succeeds(world.admin.post(f"{made.path}/storage", storage))
    new = {"new-storage-credential": warehouses.credential(world)}
    _succeeds(world.admin.post(f"{made.path}/storage-credential", new))
    for step in ("deactivate", "activate"):
        _succeeds(world.admin.post(f"{made.path}/{step}"))
    _succeeds(world.admin.delete(made.path))
    role = _succeeds(world.admin.post(f"{MANAGEMENT}/role", {"name": unique("r")}))["id"]
    _succeeds(roles.add(world, {"id": role}, "user", world.people["bob"].id))
    _succeeds(world.admin.delete(f"{MANAGEMENT}/role/{role}"))
    user = f"oidc~{unique('u')}"
    _succeeds(world.admin.post(f"{MANAGEMENT}/user", {"id": user, "name": "New"}))
    _succeeds(world.admin.delete(f"{MANAGEMENT}/user/{user}"))
    events = announced()
    of_warehouse = ["createWarehouse", "renameWarehouse", "updateWarehouseStorage", "updateWarehouseStorageCredential"]
    of_warehouse += ["deactivateWarehouse", "activateWarehouse", "deleteWarehouse"]
    assert _summary(events) == [
        *[(type, project) for type in ("createProject", "renameProject", "deleteProject")],
        *[(type, made.id) for type in of_warehouse],
        *[(type, role) for type in ("createRole", "changeRoleMembers", "deleteRole")],
        *[(type, user) for type in ("createUser", "deleteUser")],
    ]
    assert secret not in json.dumps(events)


def test_a_vended_credential_is_announced_without_its_secret(world: World, announced: Callable[[], list[Sent]]) -> None:
    table = world.table(world.namespace())
    announced()
    loaded = world.bob.get(table.path, headers={"X-Iceberg-Access-Delegation": "vended-credentials"})
    config = _succeeds(loaded)["config"]
    # The answer was sent, so the event is durable already.
    (event,) = announced()
    assert (event["type"], event["objectid"]) == ("vendCredentials", table.uuid)
    assert json.loads(event["actor"])["principal"] == world.bob.id
    assert event["data"]["prefix"].startswith(table.location)
    assert not any(config[name] in json.dumps(event) for name in ("s3.secret-access-key", "s3.session-token"))


def test_refused_and_invalid_changes_announce_nothing(world: World, announced: Callable[[], list[Sent]]) -> None:
    table = world.table(world.namespace())
    announced()
    assert world.stranger().delete(table.path).status_code in (403, 404)
    wrong = [{"type": "assert-table-uuid", "uuid": str(UUID(int=1))}]
    assert world.admin.post(table.path, {"requirements": wrong, "updates": []}).status_code == 409
    assert announced() == []


def _id(world: World, ns: str) -> str:
    (row,) = world.sql("select id::text from namespaces where levels = $1", [ns])
    return str(row["id"])


def _in(project: str) -> dict[str, str]:
    return {"x-project-id": project}


def test_each_request_of_a_bundle_is_announced(world: World, announced: Callable[[], list[Sent]]) -> None:
    bob, two = world.stranger(), [world.table(world.namespace()) for _ in range(2)]
    for table in two:
        world.grant("describe", bob, "table", table.uuid)
    first, second = sorted(table.uuid for table in two)
    announced()
    bundle, ids = asked_together(bob, world, *two)
    events = announced()
    assert _summary(events) == [("createAccessRequest", id) for id in ids]
    assert [each["data"]["object"] for each in events] == [table.uuid for table in two]
    for _ in range(2):
        _succeeds(decide(world.admin, bundle, "approve"))
    assert sorted(_summary(announced())) == sorted(
        (type, id) for type in ("approveAccessRequest", "changeGrants") for id in (first, second)
    )
    denied, _ = asked_together(bob, world, *two)
    announced()
    for _ in range(2):
        _succeeds(decide(world.admin, denied, "deny"))
    assert _summary(announced()) == [("denyAccessRequest", id) for id in (first, second)]
    withdrawn, ids = asked_together(bob, world, *two)
    announced()
    for _ in range(2):
        _succeeds(decide(bob, withdrawn, "withdraw"))
    first_event, *further = _summary(announced())
    assert first_event == ("withdrawAccessRequest", withdrawn)
    assert sorted(further) == sorted(("withdrawAccessRequest", id) for id in ids)
