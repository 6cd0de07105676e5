# SPDX-License-Identifier: Apache-2.0
"""The management API as existing guides and scripts use it, and its authorization."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stack.world import SCHEMA, Person, World, error_triple, unique


def _profile(world: World, **more: Any) -> dict[str, Any]:
    return {**world.ready.s3.profile, "bucket": world.bucket, "key-prefix": unique("wh"), **more}


def _credential(world: World) -> dict[str, str]:
    return {
        "type": "s3",
        "credential-type": "access-key",
        "access-key-id": world.ready.s3.access_key,
        "secret-access-key": world.ready.s3.secret_key,
    }


def test_configuration_names_the_prefix_and_only_served_endpoints(world: World) -> None:
    config = world.alice.get("/catalog/v1/config?warehouse=demo")
    assert config.status_code == 200
    body = config.json()
    assert body["defaults"] == {"prefix": world.warehouse, "rest-page-size": "100"}
    assert body["overrides"] == {"uri": world.ready.catalog_uri}
    assert "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}" in body["endpoints"]
    assert "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials" in body["endpoints"]
    assert "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign" in body["endpoints"]
    assert not [endpoint for endpoint in body["endpoints"] if "signer" in endpoint or "config" in endpoint]


def test_warehouse_name_is_case_insensitive_with_an_optional_project(world: World) -> None:
    for named in ("demo", "DEMO", f"{world.project}/demo"):
        config = world.alice.get("/catalog/v1/config", params={"warehouse": named})
        assert config.json()["defaults"]["prefix"] == world.warehouse


def test_health_names_each_dependency_and_needs_no_token(world: World) -> None:
    answer = world.unauthenticated.get("/health")
    assert answer.status_code == 200
    body = answer.json()
    assert (body["health"], body["maintenance_mode"]) == ("ok", "off")
    checks = {check["name"]: check for service in body["services"].values() for check in service}
    assert {"openfga", "opa", "oidc"} <= set(checks)
    assert {check["status"] for check in checks.values()} == {"ok"}
    assert all(check["lastCheck"] > 1_600_000_000_000 for check in checks.values())


def test_info_reports_what_clients_need_first(world: World) -> None:
    info = world.carol.get("/management/v1/info").json()
    assert info["bootstrapped"] is True
    assert info["default-project-id"] == world.project
    assert info["authz-backend"] == "openfga"
    assert info["version"] == info["lakekeeper-version"]


def test_the_server_is_bootstrapped_once(world: World) -> None:
    for person in (world.admin, world.carol):
        again = person.post("/management/v1/bootstrap", {"accept-terms-of-use": True})
        assert error_triple(again)[:2] == (400, "CatalogAlreadyBootstrapped")


def test_whoami_returns_the_user_record(world: World) -> None:
    me = world.carol.get("/management/v1/whoami").json()
    assert (me["id"], me["user-type"]) == ("oidc~carol", "human")
    assert world.alice.get("/management/v1/user/oidc~carol").json()["id"] == "oidc~carol"
    assert error_triple(world.alice.get("/management/v1/user/oidc~ghost"))[:2] == (404, "UserNotFound")


def test_user_self_registration_is_idempotent(world: World) -> None:
    assert world.carol.post("/management/v1/user", {"name": "carol"}).status_code == 200
    other = world.carol.post("/management/v1/user", {"id": "oidc~zed", "name": "Zed"})
    assert error_triple(other)[0] == 403
    name = f"oidc~{unique('new')}"
    assert world.admin.post("/management/v1/user", {"id": name, "name": "New"}).status_code == 201
    assert world.admin.post("/management/v1/user", {"id": name, "name": "New"}).status_code == 200


def test_users_are_listed_in_pages_to_administrators_only(world: World) -> None:
    seen: list[str] = []
    token: str | None = ""
    while token is not None:
        params = {"pageSize": "3", **({"pageToken": token} if token else {})}
        page = world.admin.get("/management/v1/user", params=params).json()
        assert len(page["users"]) <= 3
        seen += [user["id"] for user in page["users"]]
        token = page.get("next-page-token")
    assert len(seen) == len(set(seen))
    assert {user.id for user in world.ready.users.values()} <= set(seen)
    assert error_triple(world.alice.get("/management/v1/user"))[0] == 403


def test_projects_are_created_listed_and_read(world: World) -> None:
    name, id = unique("project"), unique("id")
    made = world.admin.post("/management/v1/project", {"project-name": name, "project-id": id})
    assert (made.status_code, made.json()) == (201, {"project-id": id})
    header = {"x-project-id": id}
    assert world.admin.get("/management/v1/project", headers=header).json() == {"project-id": id, "project-name": name}
    assert {"project-id": id, "project-name": name} in world.admin.get("/management/v1/project-list").json()["projects"]
    assert world.admin.post("/management/v1/project", {"project-name": name}).status_code == 409
    assert error_triple(world.alice.get("/management/v1/project", headers=header))[:2] == (404, "ProjectNotFound")
    assert world.alice.post("/management/v1/project", {"project-name": unique("mine")}).status_code == 403


def test_warehouse_body_of_existing_guides_is_accepted(world: World) -> None:
    """The body has old spellings of the keys, the project, and no STS member, which turns STS off."""
    profile = {key: value for key, value in _profile(world).items() if not key.startswith("sts-")}
    credential = {
        "type": "s3",
        "credential-type": "access-key",
        "aws-access-key-id": world.ready.s3.access_key,
        "aws-secret-access-key": world.ready.s3.secret_key,
    }
    name = unique("guide")
    body = {
        "warehouse-name": name,
        "project-id": world.project,
        "storage-profile": profile,
        "storage-credential": credential,
    }
    made = world.admin.post("/management/v1/warehouse", body)
    assert made.status_code == 201, made.text
    assert made.json()["storage-profile"]["sts-enabled"] is False
    root = f"/catalog/v1/{made.json()['warehouse-id']}"
    world.admin.post(f"{root}/namespaces", {"namespace": ["n"]})
    world.admin.post(f"{root}/namespaces/n/tables", {"name": "t", "schema": SCHEMA})
    loaded = world.admin.get(f"{root}/namespaces/n/tables/t")
    assert loaded.status_code == 200
    assert not loaded.json().get("storage-credentials")
    assert "s3.secret-access-key" not in loaded.text
    assert error_triple(world.admin.get(f"{root}/namespaces/n/tables/t/credentials"))[0] == 403


def test_warehouses_are_listed_and_read_without_their_secret(world: World) -> None:
    listed = world.admin.get("/management/v1/warehouse", headers={"x-project-id": world.project})
    assert world.warehouse in {each["warehouse-id"] for each in listed.json()["warehouses"]}
    read = world.admin.get(f"/management/v1/warehouse/{world.warehouse}")
    assert read.json()["name"] == "demo"
    for answer in (listed, read):
        assert world.ready.s3.secret_key not in answer.text


def test_a_warehouse_name_is_taken_once_in_a_project_in_any_letter_case(world: World) -> None:
    body = {"warehouse-name": "Demo", "storage-profile": _profile(world), "storage-credential": _credential(world)}
    assert error_triple(world.admin.post("/management/v1/warehouse", body))[:2] == (400, "WarehouseNameAlreadyTaken")


def test_validation_reports_each_check_and_creates_nothing(world: World) -> None:
    body: dict[str, Any] = {
        "warehouse-name": unique("v"),
        "storage-profile": _profile(world),
        "storage-credential": _credential(world),
    }
    before = world.snapshot()
    good = world.admin.post("/management/v1/warehouse-creation-validation", body)
    assert good.status_code == 200
    assert good.json()["valid"] is True
    assert {check["status"] for check in good.json()["checks"]} <= {"passed", "skipped"}
    bad = {**body, "storage-profile": {**body["storage-profile"], "bucket": "no-such-bucket-here"}}
    judged = world.admin.post("/management/v1/warehouse-creation-validation", bad)
    assert judged.status_code == 200
    assert judged.json()["valid"] is False
    assert world.snapshot() == before


@pytest.mark.parametrize(
    ("person", "action", "allowed"),
    [
        ("alice", "read_data", True),
        ("alice", "write_data", False),
        ("bob", "write_data", True),
        ("carol", "read_data", False),
    ],
)
def test_check_equals_the_doors_decision(world: World, ns: str, person: str, action: str, allowed: bool) -> None:
    table = world.table(ns)
    operation = {"table": {"warehouse-id": world.warehouse, "table-id": table.uuid, "action": action}}
    own = world.people[person].post("/management/v1/permissions/check", {"operation": operation})
    assert own.json() == {"allowed": allowed}
    about = {"operation": operation, "identity": {"user": f"oidc~{person}"}}
    assert world.admin.post("/management/v1/permissions/check", about).json() == {"allowed": allowed}


def test_checks_of_other_users_need_visibility_of_grants(world: World, ns: str) -> None:
    table = world.table(ns)
    operation = {"table": {"warehouse-id": world.warehouse, "table-id": table.uuid, "action": "read_data"}}
    about = {"operation": operation, "identity": {"user": "oidc~bob"}}
    assert world.alice.post("/management/v1/permissions/check", about).status_code == 403
    assert world.carol.post("/management/v1/permissions/check", about).status_code == 404


# ---- exactly the needed grant ----------------------------------------------------------------------------------------

_NEEDS = [
    ("GET", "", None, "describe", None, 200),
    ("HEAD", "", None, "describe", None, 204),
    ("GET", "/credentials", None, "select", "describe", 200),
    (
        "POST",
        "",
        {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]},
        "modify",
        "select",
        200,
    ),
    ("DELETE", "", None, "modify", "select", 204),
]


@pytest.mark.parametrize(("method", "path", "body", "needed", "less", "success"), _NEEDS, ids=lambda v: str(v)[:20])
def test_table_operation_needs_exactly_its_grant(
    world: World, ns: str, method: str, path: str, body: object, needed: str, less: str | None, success: int
) -> None:
    table = world.table(ns)

    def send(person: Person) -> int:
        return person.send(method, table.path + path, json=body).status_code

    assert send(world.carol) == 404
    if less is not None:
        world.grant(less, world.analyst, "table", table.uuid)
        assert send(world.analyst) == 403
    world.grant(needed, world.steward, "table", table.uuid)
    assert send(world.steward) == success


_NAMESPACE_NEEDS = [
    ("GET", "", None, "describe", None, 200),
    ("GET", "/tables", None, "describe", None, 200),
    ("POST", "/tables", {"name": "new", "schema": SCHEMA}, "create", "modify", 200),
    ("POST", "/properties", {"updates": {"a": "b"}}, "modify", "create", 200),
    ("DELETE", "", None, "modify", "create", 204),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "needed", "less", "success"), _NAMESPACE_NEEDS, ids=lambda v: str(v)[:20]
)
def test_namespace_operation_needs_exactly_its_grant(
    world: World, ns: str, method: str, path: str, body: object, needed: str, less: str | None, success: int
) -> None:
    def send(person: Person) -> int:
        return person.send(method, f"{world.root}/namespaces/{ns}{path}", json=body).status_code

    id = world.namespace_id(ns)
    assert send(world.carol) == 404
    if less is not None:
        world.grant(less, world.analyst, "namespace", id)
        assert send(world.analyst) == 403
    world.grant(needed, world.steward, "namespace", id)
    assert send(world.steward) == success
