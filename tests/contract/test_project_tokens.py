# SPDX-License-Identifier: Apache-2.0
"""Tokens that their audience binds to one project, over HTTP, at a gateway where every token is bound."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lakegate.local.identity_provider import AUDIENCE
from tests.support.servers.toxic import second_gateway
from tests.support.stack import warehouses
from tests.support.stack.data_policies import make as make_policy
from tests.support.stack.world import Person, World, error_triple, unique

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def project(world: World) -> str:
    """Create the project that tokens are bound to."""
    return warehouses.project(world)


@pytest.fixture(scope="module")
def bound(world: World, project: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """Yield the server administrator at a gateway that binds the token to that project."""
    settings = {"OPENID_AUDIENCE": "another-audience", "OPENID_PROJECT_AUDIENCES": f"{AUDIENCE}={project}"}
    log = tmp_path_factory.mktemp("bound") / "gateway.log"
    with second_gateway(world.ready, log, **settings) as (base, _):
        person = Person("bound", world.admin.id, world.admin.token, base)
        yield person
        person.http.close()


def test_project_bound_token_has_all_rights_of_its_user_there(world: World, bound: Person, project: str) -> None:
    assert bound.get("/management/v1/project").json()["project-id"] == project, (
        "a project-bound token has its project as default"
    )
    made = warehouses.make(world, bound)
    assert made.answer["project-id"] == project
    assert bound.get(made.table(bound)).status_code == 200
    listed = bound.get("/management/v1/project-list").json()["projects"]
    assert [each["project-id"] for each in listed] == [project]
    role = bound.post("/management/v1/role", {"name": unique("r")})
    assert (role.status_code, role.json()["project-id"]) == (201, project)
    assert bound.get("/management/v1/whoami").status_code == 200


def test_project_bound_token_sees_no_other_project(world: World, bound: Person) -> None:
    elsewhere = world.table(world.namespace())
    for path, type in (
        (elsewhere.path, "NoSuchTableException"),
        (f"{elsewhere.path}/credentials", "NoSuchTableException"),
        (f"{world.root}/namespaces", "NoSuchWarehouseException"),
        (f"/catalog/v1/config?warehouse={world.project}/demo", "NoSuchWarehouseException"),
        (f"/management/v1/warehouse/{world.warehouse}", "NoSuchWarehouseException"),
        (f"/management/v1/project/{world.project}", "ProjectNotFound"),
        (f"/management/v1/warehouse?projectId={world.project}", "ProjectNotFound"),
    ):
        assert error_triple(bound.get(path))[:2] == (404, type), path
    assert error_triple(bound.get("/management/v1/project", headers={"x-project-id": world.project}))[0] == 404
    assert error_triple(bound.post("/management/v1/project", {"project-name": unique("p")}))[:2] == (
        403,
        "ServerActionForbidden",
    )
    assert error_triple(bound.get("/management/v1/user"))[:2] == (403, "ServerActionForbidden")
    gone = bound.delete(f"/management/v1/user/{bound.id}")
    assert error_triple(gone)[:2] == (403, "ProjectTokenForbidden")
    table = {"warehouse-id": world.warehouse, "table-id": elsewhere.uuid, "action": "read_data"}
    check = bound.post("/management/v1/permissions/check", {"operation": {"table": table}})
    assert (check.status_code, check.json()) == (200, {"allowed": False})


def test_roles_of_other_projects_are_neither_listed_nor_assumed(world: World, bound: Person) -> None:
    role = world.admin.post("/management/v1/role", {"name": unique("r")}).json()["id"]
    members = {"members": [{"type": "user", "id": world.admin.id}]}
    assert world.admin.post(f"/management/v1/role/{role}/members", members).status_code == 204
    path = f"/management/v1/user/{world.admin.id}/roles"
    assert role in {each["id"] for each in world.admin.get(path).json()["roles"]}
    assert role not in {each["id"] for each in bound.get(path).json()["roles"]}
    refused = bound.get("/management/v1/whoami", headers={"x-assume-role": role})
    assert error_triple(refused)[:2] == (400, "InvalidAssumeRoleId")
    assert world.admin.delete(f"/management/v1/role/{role}").status_code == 204


def test_data_policies_of_other_projects_are_neither_read_nor_changed(world: World, bound: Person) -> None:
    policy = make_policy(world)
    path = f"/management/v1/data-policy/{policy['id']}"
    body = {"name": policy["name"], "definition": policy["definition"]}
    warehouse = {"type": "warehouse", "id": world.warehouse, "warehouse-id": world.warehouse}
    for answer in (
        bound.get(path),
        bound.get(f"{path}/version"),
        bound.get(f"{path}/bindings"),
        bound.send("PUT", path, json=body),
        bound.post(f"{path}/bindings", {"add": [warehouse]}),
        bound.send("DELETE", path),
    ):
        assert answer.status_code == 404, answer.text
    assert world.admin.get(path).json()["version"] == 1
    assert world.admin.send("DELETE", path).status_code == 204
