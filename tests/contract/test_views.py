# SPDX-License-Identifier: Apache-2.0
"""Views as the protocol's compatibility kit expects them."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest

from tests.support.stack.views import body, create, replace, sql_of
from tests.support.stack.world import SCHEMA, Person, World, error_triple, send_until_decided, unique


def test_a_created_view_is_loaded_listed_and_exists(world: World, ns: str) -> None:
    made = create(world, ns, sql="select 42")
    loaded = world.admin.get(made["path"])
    assert loaded.status_code == 200
    assert loaded.json()["metadata"] == made["metadata"]
    assert loaded.json()["metadata-location"] == made["metadata-location"]
    assert sql_of(loaded.json()["metadata"]) == "select 42"
    assert world.admin.head(made["path"]).status_code == 204
    listed = world.admin.get(f"{world.root}/namespaces/{ns}/views").json()
    assert listed == {"identifiers": [{"namespace": [ns], "name": made["name"]}], "next-page-token": None}
    assert world.admin.get(f"{world.root}/namespaces/{ns}/tables").json()["identifiers"] == []


def test_view_load_returns_no_credentials(world: World, ns: str) -> None:
    made = create(world, ns)
    answers = [
        made,
        world.admin.get(made["path"], headers={"X-Iceberg-Access-Delegation": "vended-credentials"}).json(),
    ]
    for answer in answers:
        assert "storage-credentials" not in answer
        assert "s3.secret-access-key" not in (answer.get("config") or {})


def test_view_metadata_files_are_written_and_numbered(world: World, ns: str) -> None:
    made = create(world, ns)
    replaced = world.admin.post(made["path"], replace(made["metadata"]["view-uuid"], "select 2")).json()
    files = [made["metadata-location"], replaced["metadata-location"]]
    assert [each.rsplit("/", 1)[1][:6] for each in files] == ["00000-", "00001-"]
    keys = {key for key, _ in world.objects()}
    for each in files:
        assert each.removeprefix(f"s3://{world.bucket}/") in keys


@pytest.mark.parametrize("verb", ["get", "delete", "commit"])
def test_missing_view_is_not_found_by_any_operation(world: World, ns: str, verb: str) -> None:
    path = f"{world.root}/namespaces/{ns}/views/nothing"
    answer = world.admin.post(path, {"updates": []}) if verb == "commit" else world.admin.send(verb.upper(), path)
    assert error_triple(answer) == (404, "NoSuchViewException", f"View does not exist: {ns}.nothing")


def test_racing_view_replacements_are_all_kept_and_numbered(world: World, ns: str) -> None:
    made = create(world, ns)
    uuid, writers = made["metadata"]["view-uuid"], 6
    answers: list[int] = []

    def write(number: int) -> None:
        answer = send_until_decided(lambda: world.admin.post(made["path"], replace(uuid, f"select {number} + 10")))
        answers.append(answer.status_code)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    metadata = world.admin.get(made["path"]).json()["metadata"]
    won = answers.count(200)
    assert set(answers) <= {200, 409}
    assert won >= 1
    assert [each["version-id"] for each in metadata["versions"]] == list(range(1, won + 2))


def test_an_update_that_changes_nothing_writes_nothing(world: World, ns: str) -> None:
    made = create(world, ns, properties={"a": "b"})
    answer = world.admin.post(made["path"], {"updates": [{"action": "set-properties", "updates": {"a": "b"}}]})
    assert answer.json()["metadata-location"] == made["metadata-location"]


def test_a_view_may_move_to_a_free_place_below_the_base(world: World, ns: str) -> None:
    made = create(world, ns)
    to = f"{made['metadata']['location'].rsplit('/', 1)[0]}/{unique('moved')}"
    moved = world.admin.post(made["path"], {"updates": [{"action": "set-location", "location": to}]})
    assert moved.status_code == 200, moved.text
    assert moved.json()["metadata"]["location"] == to
    assert moved.json()["metadata-location"].startswith(f"{to}/metadata/")
    taken = world.admin.post(
        f"{world.root}/namespaces/{ns}/tables", {"name": unique("t"), "schema": SCHEMA, "location": f"{to}/inside"}
    )
    assert error_triple(taken)[:2] == (409, "LocationAlreadyTaken")


@pytest.mark.threat("LG-LOC-08")
def test_view_move_onto_a_table_or_out_of_the_warehouse_is_refused(world: World, ns: str) -> None:
    made, table = create(world, ns), world.table(ns)
    for location, status in (
        (table.location, 409),
        (f"{table.location}/metadata", 409),
        (f"s3://{world.bucket}", 400),
        ("s3://another-bucket/x", 400),
        ("file:///etc", 400),
    ):
        answer = world.admin.post(made["path"], {"updates": [{"action": "set-location", "location": location}]})
        assert answer.status_code == status, (location, answer.text)
    assert world.admin.get(made["path"]).json()["metadata"]["location"] == made["metadata"]["location"]


def test_the_metadata_path_property_is_honoured_inside_the_view_only(world: World, ns: str) -> None:
    base = create(world, ns)["metadata"]["location"].rsplit("/", 1)[0]
    at = f"{base}/{unique('place')}"
    made = create(world, ns, location=at, properties={"write.metadata.path": f"{at}/elsewhere"})
    assert made["metadata-location"].startswith(f"{at}/elsewhere/00000-")
    assert made["metadata"]["properties"]["write.metadata.path"] == f"{at}/elsewhere"
    outside = world.admin.post(
        f"{world.root}/namespaces/{ns}/views",
        body(unique("v"), properties={"write.metadata.path": f"{base}/not_mine"}),
    )
    assert error_triple(outside)[:2] == (400, "InvalidLocation")
    later = world.admin.post(
        made["path"],
        {"updates": [{"action": "set-properties", "updates": {"write.metadata.path": f"{base}/not_mine"}}]},
    )
    assert error_triple(later)[:2] == (400, "InvalidLocation")


def test_dropped_view_is_gone_and_its_name_is_free(world: World, ns: str) -> None:
    made = create(world, ns)
    id = world.sql("select id from tables where name = $1", made["name"])[0]["id"]
    assert world.admin.delete(made["path"]).status_code == 204
    assert world.admin.head(made["path"]).status_code == 404
    assert world.tuples(f"view:{id}") == set()
    create(world, ns, made["name"])


def test_view_is_invisible_without_rights(world: World, ns: str) -> None:
    made = create(world, ns)
    hidden = error_triple(world.carol.get(made["path"]))
    assert hidden == (404, "NoSuchViewException", f"View does not exist: {ns}.{made['name']}")
    assert error_triple(world.carol.delete(made["path"])) == hidden
    assert world.carol.get(f"{world.root}/namespaces/{ns}/views").status_code == 404


def test_view_reader_sees_its_path_and_no_other_view(world: World, ns: str) -> None:
    seen, other = create(world, ns), create(world, ns)
    id = world.admin.get(f"{world.root}/namespaces/{ns}/views?returnUuids=true").json()
    uuids = dict(zip((each["name"] for each in id["identifiers"]), id["table-uuids"], strict=True))
    view_id = uuids[seen["name"]]
    world.grant("select", world.carol, "view", view_id)
    assert world.carol.get(seen["path"]).status_code == 200
    assert world.carol.get(other["path"]).status_code == 404
    listed = world.carol.get(f"{world.root}/namespaces/{ns}/views").json()["identifiers"]
    assert [each["name"] for each in listed] == [seen["name"]]
    assert error_triple(world.carol.delete(seen["path"]))[:2] == (403, "ViewActionForbidden")
    assert error_triple(world.carol.post(seen["path"], {"updates": []}))[:2] == (403, "ViewActionForbidden")
    world.revoke("select", world.carol, "view", view_id)
    assert world.carol.get(seen["path"]).status_code == 404
    assert world.carol.get(f"{world.root}/namespaces/{ns}/views").status_code == 404


def test_rights_of_another_user_on_a_view_can_be_checked(world: World, ns: str) -> None:
    made = create(world, ns)

    def may(person: Person, action: str, **named: Any) -> httpx.Response:
        about = {"warehouse-id": world.warehouse, "action": action, **named}
        return person.post("/management/v1/permissions/check", {"operation": {"view": about}})

    by_name = {"namespace": [ns], "view": made["name"]}
    assert may(world.admin, "commit", **by_name).json() == {"allowed": True}
    assert may(world.carol, "commit", **by_name).json() == {"allowed": False}
    assert may(world.admin, "read_data", **by_name).status_code == 400


def test_view_with_another_users_owner_property_is_refused(world: World, ns: str) -> None:
    """Trino runs such a view with the rights of the user that the property names."""
    subject = world.admin.id.partition("~")[2]
    world.grant("create", world.carol, "namespace", world.namespace_id(ns))
    path = f"{world.root}/namespaces/{ns}/views"
    for name in (subject, world.admin.id):
        forged = world.carol.post(path, body(unique("v"), properties={"trino.run-as-owner": name}))
        assert error_triple(forged)[:2] == (403, "ViewActionForbidden"), forged.text
    assert world.carol.get(path).json()["identifiers"] == []
    own = {"trino.run-as-owner": world.carol.id.partition("~")[2]}
    assert world.carol.post(path, body(unique("v"), properties=own)).status_code == 200


def test_redefinition_or_registration_of_another_users_definer_view_is_refused(world: World, ns: str) -> None:
    subject = world.admin.id.partition("~")[2]
    made = create(world, ns, properties={"trino.run-as-owner": subject})
    uuid = made["metadata"]["view-uuid"]
    id = str(world.sql("select id from tables where name = $1", made["name"])[0]["id"])
    world.grant("modify", world.carol, "view", id)
    world.grant("create", world.carol, "namespace", world.namespace_id(ns))
    assert error_triple(world.carol.post(made["path"], replace(uuid, "select secret")))[:2] == (
        403,
        "ViewActionForbidden",
    )
    plain = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"comment": "x"}}]}
    assert world.carol.post(made["path"], plain).status_code == 200
    assert sql_of(world.carol.get(made["path"]).json()["metadata"]) == "select 1"
    last = world.carol.get(made["path"]).json()["metadata-location"]
    world.grant("ownership", world.carol, "view", id)
    assert world.carol.delete(f"{made['path']}?purgeRequested=false").status_code == 204
    again = {"name": made["name"], "metadata-location": last}
    assert error_triple(world.carol.post(f"{world.root}/namespaces/{ns}/register-view", again))[:2] == (
        403,
        "ViewActionForbidden",
    )
    assert world.admin.post(f"{world.root}/namespaces/{ns}/register-view", again).status_code == 200
