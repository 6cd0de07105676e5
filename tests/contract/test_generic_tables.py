# SPDX-License-Identifier: Apache-2.0
"""Generic tables at the reference system's paths: stored fields, rights, and rules shared with tables and views."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from tests.support.stack.generic_tables import at, create, key_in, make, rename
from tests.support.stack.lifecycle import deleted, soft_world, undrop
from tests.support.stack.registrations import ADOPT
from tests.support.stack.views import create as create_view
from tests.support.stack.world import SCHEMA, World, error_triple, send_until_decided, unique


def based_at(location: str) -> dict[str, Any]:
    """Return the member of a creation that names a location."""
    return {"base-location": location}


# ---- stored fields ---------------------------------------------------------------------------------------------------


def test_generic_table_fields_are_returned_uninterpreted(world: World, ns: str) -> None:
    described: dict[str, Any] = {
        "doc": "Pictures.",
        "properties": {"owner": "ml"},
        "schema": {"fields": [{"name": "v", "type": ["float", 768]}], "n": 1.50},
        "statistics": [1, None, {"rows": 3}],
    }
    made = make(world, ns, **described)
    location = made["table"]["base-location"]
    assert made["table"] == {"name": made["name"], "format": "lance", "base-location": location, **described}
    assert made["id"] in location
    loaded = world.admin.get(made["path"])
    assert loaded.status_code == 200
    assert loaded.json()["table"] == made["table"]
    [credential] = loaded.json()["storage-credentials"]
    assert credential["prefix"].rstrip("/") == location.rstrip("/")
    assert set(loaded.json()) == {"table", "config", "storage-credentials"}


def test_omitted_fields_are_omitted_from_the_response(world: World, ns: str) -> None:
    made = make(world, ns, doc=None, schema=None, statistics=None)
    assert set(made["table"]) == {"name", "format", "base-location"}


def test_generic_table_name_is_case_insensitive_and_returned_as_created(world: World, ns: str) -> None:
    made = make(world, ns, f"Vec{uuid4().hex}")
    loaded = world.admin.get(made["path"].upper().replace(made["path"].upper(), at(world, ns, made["name"].upper())))
    assert loaded.json()["table"]["name"] == made["name"]
    assert error_triple(create(world, ns, made["name"].lower()))[:2] == (409, "AlreadyExistsException")
    listed = world.admin.get(at(world, ns)).json()
    assert listed == {
        "identifiers": [{"namespace": [ns], "name": made["name"], "id": made["id"], "format": "lance"}],
        "next-page-token": None,
    }


def test_generic_table_lists_are_paged_and_hold_visible_entries(world: World, ns: str) -> None:
    made = [make(world, ns, f"g{number}_{ns}") for number in range(5)]
    world.strip(world.contractor)
    for each in (made[1], made[3]):
        world.grant("select", world.contractor, "generic-table", each["id"])
    names: list[str] = []
    token = ""
    while True:
        page = world.contractor.get(f"{at(world, ns)}?pageSize=1&pageToken={token}").json()
        names += [each["name"] for each in page["identifiers"]]
        token = page["next-page-token"] or ""
        if not token:
            break
    world.strip(world.contractor)
    assert names == [made[1]["name"], made[3]["name"]]
    assert len(world.admin.get(at(world, ns)).json()["identifiers"]) == 5


@pytest.mark.parametrize(
    ("body", "type"),
    [
        ({"name": "a"}, "BadRequestException"),
        ({"name": "a", "format": ""}, "BadRequestException"),
        ({"name": "a", "format": " lance"}, "BadRequestException"),
        ({"name": "a", "format": "la\nnce"}, "BadRequestException"),
        ({"name": "a", "format": "x" * 129}, "BadRequestException"),
        ({"name": "a", "format": "csv", "properties": {"a": 1}}, "BadRequestException"),
        ({"name": "a+b", "format": "csv"}, "InvalidTableName"),
        ({"name": "", "format": "csv"}, "IdentifierNameEmpty"),
        ({"name": "a", "format": "csv", "base-location": "s3://elsewhere/x"}, "InvalidLocation"),
    ],
)
def test_invalid_generic_table_is_refused(world: World, ns: str, body: dict[str, Any], type: str) -> None:
    answer = world.admin.post(at(world, ns), body)
    assert error_triple(answer)[:2] == (400, type), answer.text


def test_generic_table_exists_only_for_callers_that_see_it(world: World, ns: str) -> None:
    made = make(world, ns)
    assert world.admin.head(made["path"]).status_code == 204
    assert world.admin.head(at(world, ns, "none")).status_code == 404
    world.strip(world.contractor)
    assert world.contractor.head(made["path"]).status_code == 404


# ---- shared names and locations --------------------------------------------------------------------------------------


def test_tables_views_and_generic_tables_share_their_names(world: World, ns: str) -> None:
    table, view, made = world.table(ns), create_view(world, ns), make(world, ns)
    for name, noun in ((table.name, "Table"), (view["name"], "View")):
        answer = create(world, ns, name)
        assert error_triple(answer) == (
            409,
            "AlreadyExistsException",
            f"{noun} with same name already exists: {ns}.{name}",
        )
        assert error_triple(world.admin.get(at(world, ns, name)))[:2] == (404, "NoSuchGenericTableException")
    requested = {"name": made["name"], "schema": SCHEMA}
    clash = f"Generic table with same name already exists: {ns}.{made['name']}"
    assert error_triple(world.admin.post(f"{world.root}/namespaces/{ns}/tables", requested)) == (
        409,
        "AlreadyExistsException",
        clash,
    )
    assert world.admin.get(f"{world.root}/namespaces/{ns}/tables/{made['name']}").status_code == 404
    assert world.admin.get(f"{world.root}/namespaces/{ns}/views/{made['name']}").status_code == 404
    for other in (table.name, view["name"]):
        assert error_triple(rename(world.admin, world, (ns, made["name"]), (ns, other)))[:2] == (
            409,
            "AlreadyExistsException",
        )
    body = {
        "source": {"namespace": [ns], "name": table.name},
        "destination": {"namespace": [ns], "name": made["name"]},
    }
    answer = world.admin.post(f"{world.root}/tables/rename", body)
    assert answer.status_code == 409
    assert "Generic table already exists" in answer.json()["error"]["message"]
    assert world.admin.get(f"{world.root}/namespaces/{ns}/tables").json()["identifiers"] == [
        {"namespace": [ns], "name": table.name}
    ]


def test_one_of_a_table_and_a_generic_table_racing_for_a_name_is_created(world: World, ns: str) -> None:
    for _ in range(3):
        name = unique("wanted")
        with ThreadPoolExecutor(2) as together:
            one = together.submit(send_until_decided, partial(create, world, ns, name))
            path = f"{world.root}/namespaces/{ns}/tables"
            table = partial(world.admin.post, path, {"name": name, "schema": SCHEMA})
            other = together.submit(send_until_decided, table)
        assert sorted([one.result().status_code, other.result().status_code]) == [200, 409]


def test_generic_table_location_overlaps_no_other_table(world: World, ns: str) -> None:
    table, made = world.table(ns), make(world, ns)
    base = made["table"]["base-location"].rstrip("/")
    for taken in (table.location, f"{table.location}/inside", base, f"{base}/inside"):
        assert error_triple(create(world, ns, **based_at(taken)))[:2] == (409, "LocationAlreadyTaken"), taken
    requested = {"name": unique("t"), "schema": SCHEMA, "location": f"{base}/inside"}
    answer = world.admin.post(f"{world.root}/namespaces/{ns}/tables", requested)
    assert error_triple(answer)[:2] == (409, "LocationAlreadyTaken")


@pytest.mark.parametrize("tree", [False, True], ids=["alone", "with its namespace"])
def test_location_with_files_is_adopted_by_a_storage_manager_only(world: World, ns: str, tree: bool) -> None:
    base = make(world, ns)["table"]["base-location"].rstrip("/").rpartition("/")[0]
    location = f"{base}/{unique('drop')}"
    key = f"{location.removeprefix(f's3://{world.bucket}/')}/part.csv"
    world.s3.put_object(Bucket=world.bucket, Key=key, Body=b"a,b")
    world.strip(world.steward)
    world.grant("create", world.steward, "namespace", world.namespace_id(ns))
    try:
        refused = create(world, ns, by=world.steward, format="csv", **based_at(location))
        assert error_triple(refused)[:2] == (400, "UnexpectedFilesInLocation")
        path, body = at(world, ns), {"name": unique("g"), "format": "csv", "base-location": location}
        assert error_triple(world.steward.post(path, body, headers=ADOPT))[:2] == (403, "WarehouseActionForbidden")
    finally:
        world.strip(world.steward)
    assert error_triple(world.admin.post(path, body))[:2] == (400, "UnexpectedFilesInLocation"), (
        "adoption must be requested explicitly"
    )
    adopted = world.admin.post(path, body, headers=ADOPT)
    assert adopted.status_code == 200, adopted.text
    made = {**adopted.json(), "path": f"{path}/{body['name']}"}
    assert world.store_of(made["config"]).get_object(Bucket=world.bucket, Key=key)["Body"].read() == b"a,b"
    # A drop without a purge flag keeps files that existed before the table, as does a namespace drop.
    gone = world.admin.delete(f"{world.root}/namespaces/{ns}?recursive=true&purge=true") if tree else None
    assert (gone or world.admin.delete(made["path"])).status_code == 204
    world.quiet()
    assert world.s3.head_object(Bucket=world.bucket, Key=key)
    # Its location stays blocked while keys for it may live.
    taken = create(world, world.namespace(), **based_at(location))
    assert error_triple(taken)[:2] == (409, "LocationAlreadyTaken")


# ---- drop, rename, protection, undrop --------------------------------------------------------------------------------


@pytest.mark.parametrize(("query", "stays"), [("", False), ("?purgeRequested=false", True)])
def test_generic_table_drop_removes_grants_and_by_default_files(world: World, ns: str, query: str, stays: bool) -> None:
    made = make(world, ns)
    key = key_in(world, made)
    world.store_of(made["config"]).put_object(Bucket=world.bucket, Key=key, Body=b"x")
    world.grant("select", world.contractor, "generic-table", made["id"])
    assert world.admin.delete(made["path"] + query).status_code == 204
    assert world.admin.get(made["path"]).status_code == 404
    assert error_triple(world.admin.delete(made["path"]))[:2] == (404, "NoSuchGenericTableException")
    assert world.tuples(f"generic_table:{made['id']}") == set()
    assert world.sql("select 1 from grants where object_id = $1", made["id"]) == []
    assert world.contractor.head(f"{world.root}/namespaces/{ns}").status_code == 404
    world.quiet()
    assert (key in {each for each, _ in world.objects(key)}) == stays
    again = make(world, ns, made["name"])
    assert again["table"]["base-location"] != made["table"]["base-location"]


def test_protected_generic_table_is_dropped_by_force_only(world: World, ns: str) -> None:
    made = make(world, ns)
    path = f"/management/v1/warehouse/{world.warehouse}/generic-table/{made['id']}/protection"
    assert world.admin.get(path).json()["protected"] is False
    assert world.admin.post(path, {"protected": True}).json()["protected"] is True
    assert error_triple(world.admin.delete(made["path"]))[:2] == (409, "ProtectedTabularDeletionWithoutForce")
    assert world.admin.delete(f"{made['path']}?force=true").status_code == 204


def test_undropped_generic_table_is_unchanged(world: World, ns: str) -> None:
    made = make(world, ns, doc="kept")
    profile = "update warehouses set delete_profile = $1::jsonb where id = $2"
    world.sql(profile, '{"type": "soft", "expiration-seconds": 3600}', world.warehouse)
    try:
        assert world.admin.delete(made["path"]).status_code == 204
    finally:
        world.sql(profile, '{"type": "hard"}', world.warehouse)
    assert world.admin.get(made["path"]).status_code == 404
    top = f"/management/v1/warehouse/{world.warehouse}/deleted-tabulars"
    namespace = world.namespace_id(ns)
    [row] = world.admin.get(f"{top}?namespaceId={namespace}").json()["tabulars"]
    assert (row["id"], row["typ"], row["name"]) == (made["id"], "generic-table", made["name"])
    undrop = {"targets": [{"type": "generic-table", "id": made["id"]}]}
    assert world.admin.post(f"{top}/undrop", undrop).status_code == 204
    assert world.admin.get(made["path"]).json()["table"] == made["table"]


def test_undrop_needs_the_right_and_a_free_name_and_location(world: World, ns: str) -> None:
    soft = soft_world(world)
    location = soft.namespace()
    made, hidden = make(soft, location), make(soft, location)
    world.strip(world.contractor)
    soft.grant("select", soft.contractor, "generic-table", made["id"])
    for each in (made, hidden):
        assert soft.admin.delete(each["path"]).status_code == 204
    target, other = ("generic-table", made["id"]), ("generic-table", hidden["id"])
    assert error_triple(undrop(soft.contractor, soft, target))[:2] == (403, "GenericTableActionForbidden")
    for absent in (other, ("generic-table", str(uuid4())), ("table", made["id"])):
        refused = error_triple(undrop(soft.contractor, soft, absent))
        word = "Table" if absent[0] == "table" else "Generic table"
        assert (refused[0], refused[2]) == (404, f"{word} does not exist: {absent[1]}")
    assert set(deleted(soft.contractor, soft)) == {made["id"]}
    assert create(soft, location, made["name"]).status_code == 200
    assert error_triple(undrop(soft.admin, soft, other, target))[:2] == (409, "AlreadyExistsException")
    assert set(deleted(soft.admin, soft)) == {made["id"], hidden["id"]}, "an undrop of several targets must be atomic"
    assert soft.admin.delete(f"{made['path']}?force=true").status_code == 204
    soft.revoke("select", soft.contractor, "generic-table", made["id"])
    soft.grant("select", soft.contractor, "namespace", soft.namespace_id(location))
    back = undrop(soft.admin, soft, target, other)
    assert (back.status_code, back.content) == (204, b"")
    assert soft.contractor.get(made["path"]).json()["table"] == made["table"]
    assert soft.admin.get(hidden["path"]).json()["table"] == hidden["table"]
    assert undrop(soft.admin, soft, target).status_code == 204, "a repeated undrop must succeed without a change"
    world.strip(world.contractor)
    soft.close()


def test_rename_moves_visibility_to_readers_of_the_new_namespace(world: World) -> None:
    old, new = world.namespace(), world.namespace()
    made, name = make(world, old), unique("moved")
    world.strip(world.contractor)
    world.strip(world.steward)
    world.grant("select", world.contractor, "namespace", world.namespace_id(old))
    world.grant("select", world.steward, "namespace", world.namespace_id(new))
    assert world.contractor.get(made["path"]).status_code == 200
    answer = rename(world.admin, world, (old, made["name"]), (new, name))
    assert (answer.status_code, answer.content) == (204, b"")
    assert world.contractor.get(at(world, new, name)).status_code == 404
    assert world.contractor.get(made["path"]).status_code == 404
    moved = world.steward.get(at(world, new, name)).json()["table"]
    assert moved == {**made["table"], "name": name}
    parents = {user for user, relation in world.tuples(f"generic_table:{made['id']}") if relation == "parent"}
    assert parents == {f"namespace:{world.namespace_id(new)}"}
    world.strip(world.contractor)
    world.strip(world.steward)


def test_generic_table_moves_with_its_namespace(world: World) -> None:
    old, new = world.namespace(), world.namespace()
    made = make(world, old)
    world.strip(world.contractor)
    world.grant("select", world.contractor, "generic-table", made["id"])
    path = f"/management/v1/warehouse/{world.warehouse}/namespace/{world.namespace_id(old)}/move"
    assert world.admin.post(path, {"destination": [new, "in"]}).status_code == 200
    assert world.contractor.get(at(world, f"{new}%1Fin", made["name"])).status_code == 200
    assert world.contractor.head(f"{world.root}/namespaces/{new}").status_code == 204
    world.strip(world.contractor)


# ---- rights --------------------------------------------------------------------------------------------------------

_FORBIDDEN = (403, "GenericTableActionForbidden")


def test_each_right_on_a_generic_table_allows_its_operations_only(world: World, ns: str) -> None:
    """`describe` reads the record, `select` gets read keys, `modify` gets write keys and may rename and drop."""
    made, person = make(world, ns), world.steward
    world.strip(person)
    elsewhere = (ns, unique("renamed"))
    assert error_triple(person.get(made["path"])) == (
        404,
        "NoSuchGenericTableException",
        f"Generic table does not exist: {ns}.{made['name']}",
    )
    assert error_triple(person.get(f"{made['path']}/credentials"))[0] == 404
    try:
        world.grant("describe", person, "generic-table", made["id"])
        assert set(person.get(made["path"]).json()) == {"table"}
        assert error_triple(person.get(f"{made['path']}/credentials"))[:2] == _FORBIDDEN
        assert error_triple(person.delete(made["path"]))[:2] == _FORBIDDEN
        assert error_triple(rename(person, world, (ns, made["name"]), elsewhere))[:2] == _FORBIDDEN
        assert error_triple(create(world, ns, by=person))[:2] == (403, "NamespaceActionForbidden")
        world.grant("select", person, "generic-table", made["id"])
        keys = world.store_of(person.get(f"{made['path']}/credentials").json()["storage-credentials"][0]["config"])
        with pytest.raises(ClientError):
            keys.put_object(Bucket=world.bucket, Key=key_in(world, made), Body=b"x")
        assert error_triple(person.delete(made["path"]))[:2] == _FORBIDDEN
        world.grant("modify", person, "generic-table", made["id"])
        keys = world.store_of(person.get(made["path"]).json()["config"])
        keys.put_object(Bucket=world.bucket, Key=key_in(world, made), Body=b"x")
        assert rename(person, world, (ns, made["name"]), elsewhere).status_code == 204
        assert person.delete(at(world, *elsewhere)).status_code == 204
    finally:
        world.strip(person)


def test_generic_table_move_needs_move_and_create_at_the_destination(world: World) -> None:
    old, new = world.namespace(), world.namespace()
    made, person = make(world, old), world.steward
    world.strip(person)
    try:
        world.grant("modify", person, "generic-table", made["id"])
        world.grant("describe", person, "namespace", world.namespace_id(new))
        there = (new, made["name"])
        assert error_triple(rename(person, world, (old, made["name"]), there))[:2] == _FORBIDDEN
        world.grant("manage_grants", person, "generic-table", made["id"])
        assert error_triple(rename(person, world, (old, made["name"]), there))[:2] == (403, "NamespaceActionForbidden")
        world.grant("create", person, "namespace", world.namespace_id(new))
        assert rename(person, world, (old, made["name"]), there).status_code == 204
    finally:
        world.strip(person)


def test_generic_table_creator_grants_rights_unless_access_is_managed(world: World, ns: str) -> None:
    person, other = world.steward, world.contractor
    world.strip(person)
    world.strip(other)
    id = world.namespace_id(ns)
    world.grant("create", person, "namespace", id)
    try:
        made = make(world, ns, by=person)
        world.grant("select", other, "generic-table", made["id"], by=person)
        assert other.get(made["path"]).status_code == 200
        managed = f"/management/v1/permissions/namespace/{id}/managed-access"
        assert world.admin.post(managed, {"managed-access": True}).status_code == 200
        world.grant("modify", other, "generic-table", made["id"], by=person, expect=403)
        path = f"/management/v1/warehouse/{world.warehouse}/generic-table/{made['id']}/grants"
        held = {(each["privilege"], each["principal"]["user"]) for each in world.admin.get(path).json()["grants"]}
        assert held == {("ownership", person.id), ("select", other.id)}
        [resource, *_] = [each["resource"] for each in world.admin.get(path).json()["grants"]]
        assert resource["type"] == "generic-table"
        assert resource["generic-table-id"] == made["id"]
    finally:
        world.strip(person)
        world.strip(other)


def test_checks_of_a_generic_table_equal_the_doors_decisions(world: World, ns: str) -> None:
    made = make(world, ns)
    world.strip(world.contractor)
    world.grant("select", world.contractor, "generic-table", made["id"])
    by_id = {"warehouse-id": world.warehouse, "table-id": made["id"]}
    by_name = {"warehouse-id": world.warehouse, "namespace": [ns], "table": made["name"]}
    checks = [
        {"operation": {"generic-table": {**about, "action": action}}, "identity": {"user": world.contractor.id}}
        for about in (by_id, by_name)
        for action in ("read_data", "write_data", "get_metadata", "drop", "undrop")
    ]
    answer = world.admin.post("/management/v1/action/batch-check", {"checks": checks})
    assert answer.status_code == 200, answer.text
    assert [each["allowed"] for each in answer.json()["results"]] == [True, False, True, False, False] * 2
    actions = world.contractor.get(f"/management/v1/warehouse/{world.warehouse}/generic-table/{made['id']}/actions")
    assert "read_data" in actions.text
    assert "write_data" not in actions.text
    as_table = {"operation": {"table": {**by_id, "action": "read_data"}}}
    answer = world.admin.post("/management/v1/action/batch-check", {"checks": [as_table]})
    assert answer.json()["results"] == [{"allowed": False}]
    world.strip(world.contractor)


def test_generic_table_creation_is_idempotent_under_its_key(world: World, ns: str) -> None:
    name, key = unique("g"), {"Idempotency-Key": str(uuid4())}
    body = {"name": name, "format": "csv"}
    first = world.admin.post(at(world, ns), body, headers=key)
    again = world.admin.post(at(world, ns), body, headers=key)
    assert (first.status_code, again.status_code) == (200, 200), again.text
    assert again.json()["table"] == first.json()["table"]
    assert world.admin.post(at(world, ns), body).status_code == 409
    drop = {"Idempotency-Key": str(uuid4())}
    assert [world.admin.delete(at(world, ns, name), headers=drop).status_code for _ in range(2)] == [204, 204]


def test_generic_table_audit_has_location_and_credentials(world: World, ns: str) -> None:
    answer = create(world, ns)
    request_id = answer.headers["x-request-id"]
    records = [row["record"] for row in world.sql("select record from audit_log where request_id = $1", request_id)]
    assert len(records) == 2, "expected audit records of the creation and of the vended keys"
    location = answer.json()["table"]["base-location"].rstrip("/").encode()
    assert all(location in record for record in records)
    assert sum(b'"session_name"' in record for record in records) == 1
    assert not any(answer.json()["config"]["s3.secret-access-key"].encode() in record for record in records)
