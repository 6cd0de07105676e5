# SPDX-License-Identifier: Apache-2.0
"""The header `x-assume-role`: only the role's rights apply, only for its members, only in its project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack.assumed_roles import acting, give
from tests.support.stack.roles import ROLE, add, make
from tests.support.stack.world import SCHEMA, Table, World, error_triple, unique


@pytest.fixture
def role(world: World) -> Iterator[dict[str, Any]]:
    """Return a role with bob as member."""
    role = make(world)
    assert add(world, role, "user", world.bob.id).status_code == 204
    yield role
    assert world.admin.delete(f"{ROLE}/{role['id']}").status_code in (204, 404)


def test_assumed_role_has_only_the_rights_of_the_role(world: World, table: Table, role: dict[str, Any]) -> None:
    write = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    assert world.bob.post(table.path, write).status_code == 200
    assert world.bob.get(table.path, headers=acting(role)).status_code == 404, (
        "an assumed role without grants must not see the table"
    )
    give(world, role, "select", "table", table.uuid)
    assert world.bob.get(table.path, headers=acting(role)).status_code == 200
    assert error_triple(world.bob.post(table.path, write, headers=acting(role)))[0] == 403
    assert world.bob.get(f"{table.path}/credentials", headers=acting(role)).status_code == 200


def test_non_member_cannot_assume_a_role_nor_learn_of_an_invisible_one(world: World, role: dict[str, Any]) -> None:
    whoami = "/management/v1/whoami"
    assert world.bob.get(whoami, headers=acting(role)).status_code == 200
    unseen = error_triple(world.carol.get(whoami, headers=acting(role)))
    absent = error_triple(world.carol.get(whoami, headers={"x-assume-role": str(uuid4())}))
    assert unseen[:2] == absent[:2] == (400, "InvalidAssumeRoleId")
    for nonsense in ("", "admin", f"{role['id']},{role['id']}"):
        refused = world.bob.get(whoami, headers={"x-assume-role": nonsense})
        assert error_triple(refused)[:2] == (400, "InvalidAssumeRoleId")
    twice = world.bob.get(whoami, headers=[("x-assume-role", role["id"]), ("x-assume-role", role["id"])])
    assert error_triple(twice)[:2] == (400, "InvalidAssumeRoleId")
    world.grant("describe", world.steward, "project", world.project)
    try:
        assert error_triple(world.steward.get(whoami, headers=acting(role)))[:2] == (403, "AssumeRoleForbidden")
    finally:
        world.revoke("describe", world.steward, "project", world.project)


def test_role_cannot_be_assumed_from_the_next_request_after_leaving_it(
    world: World, table: Table, role: dict[str, Any]
) -> None:
    give(world, role, "select", "table", table.uuid)
    assert world.bob.get(table.path, headers=acting(role)).status_code == 200
    assert world.admin.delete(f"{ROLE}/{role['id']}/members/user/{world.bob.id}").status_code == 204
    assert world.bob.get(table.path, headers=acting(role)).status_code == 400
    assert add(world, role, "user", world.bob.id).status_code == 204
    assert world.bob.get(table.path, headers=acting(role)).status_code == 200
    assert world.admin.delete(f"{ROLE}/{role['id']}").status_code == 204
    assert error_triple(world.bob.get(table.path, headers=acting(role)))[:2] == (400, "InvalidAssumeRoleId")


def test_objects_created_under_an_assumed_role_belong_to_the_role(world: World, ns: str, role: dict[str, Any]) -> None:
    give(world, role, "create", "namespace", world.namespace_id(ns))
    path = f"{world.root}/namespaces/{ns}/tables"
    made = world.bob.post(path, {"name": unique("t"), "schema": SCHEMA}, headers=acting(role))
    assert made.status_code == 200, made.text
    id = made.json()["metadata"]["table-uuid"]
    owners = {user for user, relation in world.tuples(f"table:{id}") if relation == "ownership"}
    assert owners == {f"role:{role['id']}#assignee"}


def test_role_has_effect_in_its_own_project_only(world: World, table: Table, role: dict[str, Any]) -> None:
    project = unique("other")
    made = world.admin.post("/management/v1/project", {"project-name": project, "project-id": project})
    assert made.status_code == 201
    elsewhere = world.admin.post(ROLE, {"name": "visitors"}, headers={"x-project-id": project}).json()
    assert add(world, elsewhere, "user", world.bob.id).status_code == 204
    give(world, elsewhere, "select", "table", table.uuid)
    assert world.bob.get(table.path, headers=acting(elsewhere)).status_code == 404
    named = {**acting(elsewhere), "x-project-id": world.project}
    assert error_triple(world.bob.get("/management/v1/project", headers=named))[:2] == (403, "AssumeRoleForbidden")
    give(world, role, "describe", "project", world.project)
    give(world, elsewhere, "describe", "project", project)
    for one, id in ((role, world.project), (elsewhere, project)):
        listed = world.bob.get("/management/v1/project-list", headers=acting(one)).json()["projects"]
        assert [each["project-id"] for each in listed] == [id]
    assert world.admin.delete(f"{ROLE}/{elsewhere['id']}").status_code == 204


def test_audit_names_the_assumed_role(world: World, table: Table, role: dict[str, Any]) -> None:
    give(world, role, "select", "table", table.uuid)
    answer = world.bob.get(f"{table.path}/credentials", headers=acting(role))
    assert answer.status_code == 200
    statement = "select convert_from(record, 'UTF8') as told from audit_log where request_id = $1"
    records = [row["told"] for row in world.sql(statement, answer.headers["x-request-id"])]
    assert any("vend_credentials" in record and role["id"] in record for record in records)
