# SPDX-License-Identifier: Apache-2.0
"""`Idempotency-Key` on changes of the management API, by the catalog's rules (`test_idempotency.py`)."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from tests.support.stack import warehouses
from tests.support.stack.world import World, error_triple, unique

PROJECT = "/management/v1/project"
ROLE = "/management/v1/role"
USER = "/management/v1/user"


def _key() -> dict[str, str]:
    return {"Idempotency-Key": str(uuid.uuid4())}


def _twice(world: World, method: str, path: str, body: object, **headers: str) -> tuple[httpx.Response, httpx.Response]:
    given = {**_key(), **headers}
    first, again = (world.admin.send(method, path, json=body, headers=given) for _ in range(2))
    assert first.is_success, first.text
    assert again.status_code == first.status_code, again.text
    return first, again


def test_repeated_project_creation_returns_201_without_a_second_project(world: World) -> None:
    body = {"project-name": unique("p")}
    first, again = _twice(world, "POST", PROJECT, body)
    assert first.status_code == 201
    assert again.json() == first.json()
    assert error_triple(world.admin.post(PROJECT, body, headers=_key()))[:2] == (409, "ProjectNameAlreadyTaken")


def test_repeated_warehouse_creation_returns_its_current_state(world: World) -> None:
    header = {"x-project-id": warehouses.project(world)}
    key, body = _key(), warehouses.creation(world)
    first = world.admin.post("/management/v1/warehouse", body, headers={**key, **header})
    assert first.status_code == 201, first.text
    path = f"/management/v1/warehouse/{first.json()['warehouse-id']}"
    again = world.admin.post("/management/v1/warehouse", body, headers={**key, **header})
    assert (again.status_code, again.json()) == (201, first.json())
    secret = body["storage-credential"]["secret-access-key"]
    assert secret not in again.text
    kept = world.sql("select encode(body_digest, 'hex') || coalesce(detail::text, '') as told from idempotency")
    assert not any(secret in row["told"] for row in kept)
    name = unique("w")
    first, again = _twice(world, "POST", f"{path}/rename", {"new-name": name})
    assert first.json() == again.json()
    assert again.json()["name"] == name
    assert world.admin.post("/management/v1/warehouse", body, headers={**key, **header}).json()["name"] == name
    assert world.admin.delete(path).status_code == 204
    gone = world.admin.post("/management/v1/warehouse", body, headers={**key, **header})
    assert gone.status_code == 404, "a repeated creation must not recreate a deleted object"


def test_repeated_warehouse_changes_return_a_response(world: World) -> None:
    made = warehouses.make(world)
    storage = {"storage-profile": made.answer["storage-profile"], "storage-credential": warehouses.credential(world)}
    changes: list[tuple[str, dict[str, Any]]] = [
        ("protection", {"protected": False}),
        ("delete-profile", {"delete-profile": {"type": "soft", "expiration-seconds": 7200}}),
        ("format-version-policy", {"allowed-format-versions": [2]}),
        ("storage", storage),
        ("storage-credential", {"new-storage-credential": storage["storage-credential"]}),
    ]
    for end, body in changes:
        first, again = _twice(world, "POST", f"{made.path}/{end}", body)
        assert first.status_code == 200
        assert again.json() == first.json(), end
    version = world.sql("select profile_version from warehouses where id::text = $1", made.id)[0]["profile_version"]
    assert version == 3, "each of the two storage changes must run once"


def test_retry_does_not_undo_later_changes(world: World) -> None:
    made, key = warehouses.make(world), _key()
    for end in ("deactivate", "activate"):
        done = world.admin.post(f"{made.path}/{end}", headers=key)
        assert (done.status_code, done.content) == (200, b"")
    again = world.admin.post(f"{made.path}/deactivate", headers=key)
    assert (again.status_code, again.content) == (200, b"")
    assert world.admin.get(made.path).json()["status"] == "active"


def test_role_changes_are_idempotent_under_their_keys(world: World) -> None:
    name = unique("r")
    first, again = _twice(world, "POST", ROLE, {"name": name})
    assert first.status_code == 201
    assert again.json() == first.json()
    path = f"{ROLE}/{first.json()['id']}"
    first, again = _twice(world, "POST", path, {"name": name, "description": "other"})
    assert first.json() == again.json()
    source = {"provider-id": "lakekeeper", "source-id": unique("s")}
    first, again = _twice(world, "PUT", f"{path}/source-system", source)
    assert first.json() == again.json()
    members = {"members": [{"type": "user", "id": world.carol.id}]}
    _twice(world, "POST", f"{path}/members", members)
    _twice(world, "DELETE", f"{path}/members/user/{world.carol.id}", None)
    _twice(world, "DELETE", path, None)


def test_repeated_user_creation_returns_its_first_status(world: World) -> None:
    id = f"oidc~{unique('u')}"
    body = {"id": id, "name": "One", "user-type": "human", "update-if-exists": True}
    first, again = _twice(world, "POST", USER, body)
    assert first.status_code == 201
    assert again.json() == first.json()
    later, repeated = _twice(world, "POST", USER, body)
    assert later.status_code == 200
    assert repeated.json() == later.json()
    first, again = _twice(world, "PUT", f"{USER}/{id}", {"name": "Two", "user-type": "human"})
    assert first.json() == again.json()
    _twice(world, "DELETE", f"{USER}/{id}", None)


def test_repeated_namespace_move_returns_the_current_path(world: World) -> None:
    ns, parent, key = world.namespace(), world.namespace(), _key()
    path = f"/management/v1/warehouse/{world.warehouse}/namespace/{world.namespace_id(ns)}"
    body = {"destination": [parent, unique("moved")]}
    first, again = (world.admin.post(f"{path}/move", body, headers=key) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200), again.text
    assert again.json() == first.json()
    elsewhere = [unique("elsewhere")]
    assert world.admin.post(f"{path}/move", {"destination": elsewhere}).status_code == 200
    now = world.admin.post(f"{path}/move", body, headers=key).json()
    assert (now["namespace"], now.get("parent-namespace-id")) == (elsewhere, None)


@pytest.mark.parametrize("kind", ["namespace", "table", "warehouse"])
def test_repeated_protection_change_returns_the_current_state(world: World, ns: str, kind: str) -> None:
    on = {
        "namespace": f"/management/v1/warehouse/{world.warehouse}/namespace/{world.namespace_id(ns)}",
        "table": f"/management/v1/warehouse/{world.warehouse}/table/{world.table(ns).uuid}",
        "warehouse": warehouses.make(world).path,
    }[kind]
    key = _key()
    assert world.admin.post(f"{on}/protection", {"protected": True}, headers=key).json()["protected"] is True
    assert world.admin.post(f"{on}/protection", {"protected": False}).json()["protected"] is False
    again = world.admin.post(f"{on}/protection", {"protected": True}, headers=key)
    assert (again.status_code, again.json()["protected"]) == (200, False)


def test_retry_does_not_renew_a_revoked_grant(world: World, ns: str) -> None:
    id, key = world.namespace_id(ns), _key()
    path = f"/management/v1/permissions/namespace/{id}/assignments"
    body = {"writes": [{"type": "select", "user": world.contractor.id}]}
    assert world.admin.post(path, body, headers=key).status_code == 204
    assert world.admin.post(path, body, headers=key).status_code == 204, (
        "a repeated request must return its first status and not 409"
    )
    world.revoke("select", world.contractor, "namespace", id)
    assert world.admin.post(path, body, headers=key).status_code == 204
    assert world.admin.get(path).json()["assignments"] == [{"type": "ownership", "user": world.admin.id}]


def test_another_body_or_another_project_under_the_same_key_is_422(world: World) -> None:
    one, two, key = warehouses.project(world), warehouses.project(world), _key()
    body = {"new-name": unique("p")}
    assert world.admin.post(f"{PROJECT}/rename", body, headers={**key, "x-project-id": one}).status_code == 200
    for other, project in ((body, two), ({"new-name": unique("p")}, one)):
        refused = world.admin.post(f"{PROJECT}/rename", other, headers={**key, "x-project-id": project})
        assert error_triple(refused)[:2] == (422, "UnprocessableEntityException")
    bad = world.admin.post(f"{PROJECT}/rename", body, headers={"Idempotency-Key": "x", "x-project-id": one})
    assert error_triple(bad)[:2] == (400, "InvalidIdempotencyKey")


def test_retry_is_authorized_again(world: World) -> None:
    id, person, key = warehouses.project(world), world.contractor, _key()
    header = {"x-project-id": id}
    world.grant("role_creator", person, "project", id)
    body = {"name": unique("r")}
    made = person.post(ROLE, body, headers={**key, **header})
    assert made.status_code == 201, made.text
    assert person.post(ROLE, body, headers={**key, **header}).json() == made.json()
    path = f"{ROLE}/{made.json()['id']}"
    world.revoke("ownership", person, "role", made.json()["id"])
    world.strip(person)
    again = person.post(ROLE, body, headers={**key, **header})
    assert again.status_code == 404, again.text
    assert body["name"] not in again.text
    assert world.admin.get(path).status_code == 200


def test_only_successes_are_recorded_under_an_idempotency_key(world: World) -> None:
    id, person, key = warehouses.project(world), world.contractor, _key()
    world.strip(person)
    body, header = {"name": unique("r")}, {"x-project-id": id}
    assert person.post(ROLE, body, headers={**key, **header}).status_code == 404
    world.grant("project_admin", person, "project", id)
    assert person.post(ROLE, body, headers={**key, **header}).status_code == 201
    world.strip(person)
