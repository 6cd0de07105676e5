# SPDX-License-Identifier: Apache-2.0
"""Warehouses: each change with its response, the required right and the refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stack import warehouses
from tests.support.stack.warehouses import WAREHOUSE, Made
from tests.support.stack.world import SCHEMA, World, error_triple, unique


@pytest.fixture(scope="module")
def made(world: World) -> Made:
    """Create a warehouse that tests change and restore."""
    return warehouses.make(world)


def test_a_warehouse_is_renamed_and_keeps_its_prefix(world: World, made: Made) -> None:
    name = unique("Renamed")
    done = world.admin.post(f"{made.path}/rename", {"new-name": name})
    assert done.status_code == 200
    assert done.json() == {**made.answer, "name": name, "updated-at": done.json()["updated-at"]}
    found = world.admin.get(f"/catalog/v1/config?warehouse={name.lower()}")
    assert found.json()["defaults"]["prefix"] == made.id
    assert error_triple(world.admin.get(f"/catalog/v1/config?warehouse={made.name}"))[0] == 404
    assert error_triple(world.admin.post(f"{made.path}/rename", {"new-name": "DEMO"}))[:2] == (
        400,
        "WarehouseNameAlreadyTaken",
    )
    for bad in ("", "a/b", "x" * 129, "a\x00b"):
        assert world.admin.post(f"{made.path}/rename", {"new-name": bad}).status_code == 400, bad
    assert world.admin.post(f"{made.path}/rename", {"new-name": made.name}).status_code == 200


def test_a_warehouse_named_with_a_slash_is_refused(world: World) -> None:
    body = warehouses.creation(world, **{"warehouse-name": "a/b"})
    assert error_triple(world.admin.post(WAREHOUSE, body))[:2] == (400, "BadRequestException")


def test_local_warehouse_refusal_names_the_setting_that_allows_it(world: World) -> None:
    body = warehouses.creation(world, **{"storage-profile": {"type": "local", "directory": "/srv/lake/dev"}})
    status, kind, message = error_triple(world.admin.post(WAREHOUSE, body))
    assert (status, kind) == (400, "StorageTypeNotSupported")
    assert "LAKEGATE__STORAGE_LOCAL_DIRECTORIES" in message
    report = world.admin.post(f"{WAREHOUSE}-creation-validation", body).json()
    errors = {check["name"]: check["error"] for check in report["checks"] if check["status"] == "failed"}
    assert errors["profile-well-formed"] == {"message": message, "type": kind, "code": 400}


def test_warehouses_are_listed_by_their_status(world: World) -> None:
    sleeping, awake = warehouses.make(world), warehouses.make(world)
    assert world.admin.post(f"{sleeping.path}/deactivate").status_code == 200

    def listed(query: str) -> dict[str, str]:
        found = world.admin.get(f"{WAREHOUSE}{query}")
        assert found.status_code == 200, found.text
        ids = (sleeping.id, awake.id)
        return {each["warehouse-id"]: each["status"] for each in found.json()["warehouses"] if each["id"] in ids}

    both = {sleeping.id: "inactive", awake.id: "active"}
    assert listed("") == listed("?warehouseStatus=active") == {awake.id: "active"}
    assert listed("?warehouseStatus=inactive") == {sleeping.id: "inactive"}
    assert listed("?warehouseStatus=active,inactive") == both
    assert listed("?warehouseStatus=active&warehouseStatus=INACTIVE") == both
    assert error_triple(world.admin.get(f"{WAREHOUSE}?warehouseStatus=gone"))[0] == 400


def test_inactive_warehouse_is_absent_in_the_catalog_and_manageable(world: World) -> None:
    warehouse = warehouses.make(world)
    path = warehouse.table(world.admin)
    namespace = path.rsplit("/tables/", 1)[0]
    body = {"source": {"namespace": ["x"], "name": "y"}, "destination": {"namespace": ["x"], "name": "z"}}
    requests: list[tuple[str, str, Any]] = [
        ("GET", f"/catalog/v1/config?warehouse={warehouse.name}", None),
        ("GET", f"{warehouse.root}/namespaces", None),
        ("POST", f"{warehouse.root}/namespaces", {"namespace": ["other"]}),
        ("GET", namespace, None),
        ("HEAD", namespace, None),
        ("DELETE", namespace, None),
        ("POST", f"{namespace}/properties", {"updates": {"a": "b"}}),
        ("GET", f"{namespace}/tables", None),
        ("POST", f"{namespace}/tables", {"name": "other", "schema": SCHEMA}),
        ("GET", path, None),
        ("GET", f"{path}/credentials", None),
        ("POST", path, {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}),
        ("DELETE", path, None),
        ("GET", f"{namespace}/views", None),
    ]
    assert world.admin.post(f"{warehouse.path}/deactivate").status_code == 200
    assert world.admin.post(f"{warehouse.path}/deactivate").status_code == 200, (
        "repeating the current status must succeed"
    )
    for method, at, sent in requests:
        answer = world.admin.send(method, at, json=sent)
        shown = error_triple(answer)[:2] if method != "HEAD" else (answer.status_code, "WarehouseNotActive")
        assert shown == (404, "WarehouseNotActive"), (method, at)
        hidden = world.carol.send(method, at, json=sent)
        assert hidden.status_code == 404
        assert method == "HEAD" or error_triple(hidden)[1] != "WarehouseNotActive", (method, at)
    assert error_triple(world.admin.post(f"{warehouse.root}/tables/rename", body))[0] == 404
    read = world.admin.get(warehouse.path)
    assert (read.status_code, read.json()["status"]) == (200, "inactive")
    grant = world.grants_path("warehouse", warehouse.id)
    assert world.admin.get(grant).status_code == 200
    assert world.admin.post(f"{warehouse.path}/activate").status_code == 200
    for method, at, sent in requests:
        if method == "GET":
            assert world.admin.send(method, at, json=sent).status_code == 200, at


def test_checks_in_an_inactive_warehouse_are_denied(world: World) -> None:
    warehouse = warehouses.make(world)
    path = warehouse.table(world.admin)
    namespace, name = path.split("/namespaces/")[1].split("/tables/")
    there = {"warehouse-id": warehouse.id, "namespace": [namespace], "table": name}
    checks = [
        {"operation": {"table": {**there, "action": "read_data"}}},
        {"operation": {"table": {**there, "action": "grant_select"}}},
        {"operation": {"warehouse": {"warehouse-id": warehouse.id, "action": "use"}}},
        {"operation": {"warehouse": {"warehouse-id": warehouse.id, "action": "activate"}}},
    ]

    def requested() -> list[bool]:
        answer = world.admin.post("/management/v1/action/batch-check", {"checks": checks})
        assert answer.status_code == 200, answer.text
        return [each["allowed"] for each in answer.json()["results"]]

    assert requested() == [True, True, True, True]
    world.admin.post(f"{warehouse.path}/deactivate")
    assert requested() == [False, True, False, True]


def test_empty_warehouse_is_deleted_with_its_grants_but_not_its_files(world: World) -> None:
    prefix = unique("kept")
    warehouse = warehouses.make(world, **warehouses.stored_at(world, prefix))
    path = warehouse.table(world.admin)
    world.grant("describe", world.carol, "warehouse", warehouse.id)
    assert error_triple(world.admin.delete(warehouse.path))[:2] == (409, "WarehouseNotEmpty")
    kept = f"{path}?purgeRequested=false"
    assert world.admin.delete(kept).status_code == 204
    assert error_triple(world.admin.delete(warehouse.path))[:2] == (409, "WarehouseNotEmpty")
    assert world.admin.delete(path.rsplit("/tables/", 1)[0]).status_code == 204
    files = world.objects(f"{prefix}/")
    assert files
    gone = world.admin.delete(warehouse.path)
    assert (gone.status_code, gone.content) == (204, b"")
    assert world.objects(f"{prefix}/") == files
    assert world.tuples(f"warehouse:{warehouse.id}") == set()
    assert world.sql("select 1 from grants where object_id = $1", warehouse.id) == []
    for person in (world.admin, world.carol):
        assert error_triple(person.get(warehouse.path))[:2] == (404, "NoSuchWarehouseException")
        assert error_triple(person.get(f"{warehouse.root}/namespaces"))[:2] == (404, "NoSuchWarehouseException")
    # Its name and its location are free again, and a new warehouse there has no grants.
    named: dict[str, Any] = {"warehouse-name": warehouse.name}
    again = warehouses.make(world, **named, **warehouses.stored_at(world, prefix))
    assert error_triple(world.carol.get(again.path))[0] == 404


def test_warehouse_with_pending_work_is_not_deleted(world: World) -> None:
    warehouse = warehouses.make(world)
    world.sql(
        "insert into tasks (id, queue, warehouse_id, entity_type, entity_id, payload, scheduled_for) values "
        "(gen_random_uuid(), 'purge_table', $1::text::uuid, 'table', gen_random_uuid(), '{}', now() + interval '1 h')",
        warehouse.id,
    )
    assert error_triple(world.admin.delete(warehouse.path))[:2] == (409, "WarehouseHasUnfinishedTasks")
    world.sql("update tasks set status = 'cancelled' where warehouse_id = $1::text::uuid", warehouse.id)
    world.sql(
        "insert into pending_files (location, warehouse_id) values ($1, $2::text::uuid)", unique("s3://x"), warehouse.id
    )
    assert error_triple(world.admin.delete(warehouse.path))[:2] == (409, "WarehouseHasUnfinishedTasks")
    world.sql("delete from pending_files where warehouse_id = $1::text::uuid", warehouse.id)
    assert world.admin.delete(warehouse.path).status_code == 204


def test_abandoning_files_deletes_a_warehouse_without_store_audited(world: World) -> None:
    """The purge and the file cleanup fail permanently; without this option the warehouse could never be deleted.

    `force` overrides protection only; it abandons no deletion that a user requested.
    """
    warehouse = warehouses.make(world)
    at = world.root.replace(world.warehouse, warehouse.id)
    assert world.admin.post(f"{at}/namespaces", {"namespace": ["a"]}).status_code == 200
    table = world.admin.post(f"{at}/namespaces/a/tables", {"name": "t", "schema": SCHEMA}).json()["metadata"]
    world.sql(
        "update warehouses set profile = convert_to((convert_from(profile, 'UTF8')::jsonb || $2::jsonb)::text, 'UTF8') "
        "where id = $1::text::uuid",
        warehouse.id,
        '{"endpoint": "http://127.0.0.1:9"}',
    )
    assert world.admin.delete(f"{at}/namespaces/a/tables/t?purgeRequested=true").status_code == 204
    assert world.admin.delete(f"{at}/namespaces/a").status_code == 204
    noted = unique(f"s3://{world.bucket}/noted")
    world.sql("insert into pending_files (location, warehouse_id) values ($1, $2::text::uuid)", noted, warehouse.id)
    task = "select status from tasks where warehouse_id = $1::text::uuid and queue = 'tabular_purge'"
    warehouses.until(lambda: world.sql(f"{task} and attempt > 0", warehouse.id) != [])
    for query in ("", "?force=true"):
        assert error_triple(world.admin.delete(f"{warehouse.path}{query}"))[:2] == (409, "WarehouseHasUnfinishedTasks")
    assert world.admin.delete(f"{warehouse.path}?abandon-files=true").status_code == 204
    assert error_triple(world.admin.get(warehouse.path))[0] == 404
    assert world.sql(task, warehouse.id) == []
    assert world.sql("select 1 from pending_files where location = $1", noted) == []
    [row] = world.sql(
        "select convert_from(record, 'UTF8') as r from audit_log where operation = 'delete_warehouse' "
        "and convert_from(record, 'UTF8') like '%' || $1 || '%' and convert_from(record, 'UTF8') like '%_left%'",
        warehouse.id,
    )
    detail = json.loads(row["r"])["detail"]
    assert [json.loads(detail[left]) for left in ("places_left", "files_left")] == [[table["location"]], [noted]]


def test_a_protected_warehouse_is_deleted_by_force_only(world: World) -> None:
    warehouse = warehouses.make(world)
    done = world.admin.post(f"{warehouse.path}/protection", {"protected": True})
    assert (done.status_code, done.json()["protected"]) == (200, True)
    assert set(done.json()) == {"protected", "updated_at"}
    assert world.admin.get(warehouse.path).json()["protected"] is True
    assert error_triple(world.admin.delete(warehouse.path))[:2] == (409, "WarehouseProtected")
    assert error_triple(world.admin.delete(f"{warehouse.path}?force=maybe"))[0] == 400
    assert world.admin.delete(f"{warehouse.path}?force=true").status_code == 204


def test_the_delete_profile_is_replaced(world: World, made: Made) -> None:
    for value in ({"type": "soft", "expiration-seconds": 3600}, {"type": "hard"}):
        done = world.admin.post(f"{made.path}/delete-profile", {"delete-profile": value})
        assert (done.status_code, done.json()["delete-profile"]) == (200, value)
        assert world.admin.get(made.path).json()["delete-profile"] == value
        defaults = world.admin.get("/catalog/v1/config", params={"warehouse": made.name}).json()["defaults"]
        # Spark would delete the files of a dropped table that can be restored.
        assert defaults.get("s3.delete-enabled") == ("false" if value["type"] == "soft" else None)
    for bad in ({"type": "soft"}, {"type": "soft", "expiration-seconds": -1}, {"type": "never"}, {}):
        assert world.admin.post(f"{made.path}/delete-profile", {"delete-profile": bad}).status_code == 400


def test_the_format_version_policy_holds_for_creation_registration_and_upgrade(world: World) -> None:
    warehouse = warehouses.make(world)
    old = warehouse.table(world.admin)
    tables = old.rsplit("/", 1)[0]
    file = world.admin.get(old).json()["metadata-location"]
    policy = f"{warehouse.path}/format-version-policy"
    assert error_triple(world.admin.post(policy, {"allowed-format-versions": [1], "default-format-version": 2}))[
        :2
    ] == (
        400,
        "DefaultFormatVersionNotAllowed",
    )
    bad_ones: tuple[dict[str, list[int]], ...] = (
        {"allowed-format-versions": []},
        {"allowed-format-versions": [4]},
        {},
    )
    for bad in bad_ones:
        assert world.admin.post(policy, bad).status_code == 400
    done = world.admin.post(policy, {"allowed-format-versions": [1, 1]})
    assert done.status_code == 200
    assert done.json()["allowed-format-versions"] == [1]
    assert "default-format-version" not in done.json()

    def create(version: str | None) -> Any:
        properties = {} if version is None else {"properties": {"format-version": version}}
        return world.admin.post(tables, {"name": unique("t"), "schema": SCHEMA, **properties})

    assert create(None).json()["metadata"]["format-version"] == 1, (
        "the only permitted format version must be the default"
    )
    assert error_triple(create("2"))[:2] == (400, "FormatVersionNotAllowed")
    new = create("1").json()["metadata"]
    upgrade = {"action": "upgrade-format-version", "format-version": 2}
    listed = [each["name"] for each in world.admin.get(tables).json()["identifiers"]]
    first = next(name for name in listed if not old.endswith(f"/{name}"))
    assert new["format-version"] == 1
    assert error_triple(world.commit(world.admin, f"{tables}/{first}", upgrade))[:2] == (400, "FormatVersionNotAllowed")
    assert world.admin.post(f"{tables.rsplit('/', 1)[0]}/unregister", {}).status_code == 404
    assert world.admin.delete(f"{old}?purgeRequested=false").status_code == 204
    again = world.admin.post(f"{tables.rsplit('/', 1)[0]}/register", {"name": unique("t"), "metadata-location": file})
    assert error_triple(again)[:2] == (400, "FormatVersionNotAllowed")
    assert world.admin.post(policy, {"allowed-format-versions": [2, 3], "default-format-version": 3}).status_code == 200
    assert create(None).json()["metadata"]["format-version"] == 3
    # A table in a version that is no longer allowed still accepts commits.
    comment = {"action": "set-properties", "updates": {"comment": "x"}}
    assert world.commit(world.admin, f"{tables}/{first}", comment).status_code == 200


_CHANGES: dict[str, tuple[str, Any]] = {
    "rename": ("can_rename", {"new-name": "?"}),
    "activate": ("can_activate", None),
    "deactivate": ("can_deactivate", None),
    "protection": ("can_set_protection", {"protected": False}),
    "delete-profile": ("can_modify_soft_deletion", {"delete-profile": {"type": "hard"}}),
    "format-version-policy": ("can_set_format_version_policy", {"allowed-format-versions": [1, 2, 3]}),
    "storage": ("can_update_storage", "storage"),
    "storage-credential": ("can_update_storage", "credential"),
    "storage/validate-profile": ("can_update_storage", "storage"),
    "storage/validate-credential": ("can_update_storage", "credential"),
    "storage/validate-access": ("can_update_storage", None),
}


@pytest.mark.parametrize("change", _CHANGES)
def test_warehouse_change_needs_modify_and_storage_its_own_privilege(world: World, change: str) -> None:
    prefix = unique("mine")
    warehouse = warehouses.make(world, **warehouses.stored_at(world, prefix))
    action, body = _CHANGES[change]
    if body == "storage":
        body = {
            "storage-profile": warehouses.profile(world, prefix),
            "storage-credential": warehouses.credential(world),
        }
    elif body == "credential":
        body = {"new-storage-credential": warehouses.credential(world)}
    elif change == "rename":
        body = {"new-name": unique("w")}
    person = world.contractor
    world.strip(person)
    path = f"{warehouse.path}/{change}"

    def send() -> tuple[int, str]:
        answer = person.post(path, body)
        return (200, "") if answer.status_code == 200 else error_triple(answer)[:2]

    def may() -> bool:
        check = {"operation": {"warehouse": {"warehouse-id": warehouse.id, "action": action}}}
        return bool(person.post("/management/v1/permissions/check", check).json()["allowed"])

    assert (send(), may()) == ((404, "NoSuchWarehouseException"), False)
    world.grant("create", person, "warehouse", warehouse.id)
    assert (send(), may()) == ((403, "WarehouseActionForbidden"), False)
    world.grant("modify", person, "warehouse", warehouse.id)
    if action == "can_update_storage":
        assert (send(), may()) == ((403, "WarehouseActionForbidden"), False)
        world.grant("manage_storage", person, "warehouse", warehouse.id)
    assert (send(), may()) == ((200, ""), True)
    world.strip(person)


def test_deleting_a_warehouse_needs_modify(world: World) -> None:
    warehouse, person = warehouses.make(world), world.contractor
    world.strip(person)
    assert error_triple(person.delete(warehouse.path))[:2] == (404, "NoSuchWarehouseException")
    world.grant("create", person, "warehouse", warehouse.id)
    assert error_triple(person.delete(warehouse.path))[:2] == (403, "WarehouseActionForbidden")
    world.grant("modify", person, "warehouse", warehouse.id)
    assert person.delete(warehouse.path).status_code == 204
    assert world.tuples_of(f"user:{person.id}", "project") == set(), (
        "the traverse tuple must be deleted with the warehouse"
    )


def test_every_warehouse_change_is_audited_with_its_actor(world: World) -> None:
    warehouse = warehouses.make(world)
    world.admin.post(f"{warehouse.path}/deactivate")
    world.admin.delete(warehouse.path)
    found = world.sql(
        "select operation, outcome, actor_id from audit_log "
        "where operation in ('deactivate_warehouse', 'delete_warehouse') "
        "and strpos(convert_from(record, 'UTF8'), $1) > 0 order by at",
        warehouse.id,
    )
    assert [tuple(row) for row in found] == [
        ("deactivate_warehouse", "allowed", world.admin.id),
        ("delete_warehouse", "allowed", world.admin.id),
    ]
