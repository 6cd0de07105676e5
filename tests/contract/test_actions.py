# SPDX-License-Identifier: Apache-2.0
"""Allowed actions of a caller per object, and transitive role membership."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack.roles import ROLE, add, make
from tests.support.stack.world import Person, World, error_triple, unique

BASE = "/management/v1"


def allowed(person: Person, path: str, **of: str) -> list[str]:
    """Return the names of the allowed actions."""
    answer = person.get(f"{path}/actions", params=of)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"allowed-actions"}
    assert all(set(each) == {"action"} for each in body["allowed-actions"])
    return [each["action"] for each in body["allowed-actions"]]


@pytest.fixture(autouse=True)
def _revoke_after_test(world: World) -> Iterator[None]:
    """Remove the grants of carol afterwards: other tests rely on a user without grants."""
    yield
    world.strip(world.carol)


@pytest.fixture
def things(world: World, ns: str) -> dict[str, str]:
    """Return the path of one object of each kind below a warehouse."""
    table, role = world.table(ns), make(world)
    within = f"{BASE}/warehouse/{world.warehouse}"
    return {
        "warehouse": within,
        "namespace": f"{within}/namespace/{world.namespace_id(ns)}",
        "table": f"{within}/table/{table.uuid}",
        "role": f"{ROLE}/{role['id']}",
    }


ABSENT = {
    "warehouse": "NoSuchWarehouseException",
    "namespace": "NoSuchNamespaceException",
    "table": "NoSuchTableException",
    "role": "RoleIdNotFound",
}


@pytest.mark.parametrize("kind", list(ABSENT))
def test_invisible_objects_have_no_actions(world: World, things: dict[str, str], kind: str) -> None:
    path = things[kind]
    hidden = world.carol.get(f"{path}/actions")
    id = path.rpartition("/")[2]
    other = str(uuid4())
    absent = world.carol.get(f"{path.removesuffix(id)}{other}/actions")
    assert error_triple(hidden)[:2] == error_triple(absent)[:2] == (404, ABSENT[kind])
    assert error_triple(hidden)[2].replace(id, other) == error_triple(absent)[2]
    assert world.admin.get(f"{path.removesuffix(id)}not-an-id/actions").status_code == 400


def test_actions_equal_the_allowed_checks(world: World, ns: str) -> None:
    table = world.table(ns)
    path = f"{BASE}/warehouse/{world.warehouse}/table/{table.uuid}"
    world.grant("select", world.carol, "table", table.uuid)
    own = allowed(world.carol, path)
    assert own == ["get_metadata", "get_tasks", "include_in_list", "read_data"]
    about = {"warehouse-id": world.warehouse, "table-id": table.uuid}
    everything = [*own, "drop", "commit", "write_data", "rename", "undrop", "set_protection", "control_tasks"]
    checks = [{"operation": {"table": {**about, "action": {"action": each}}}} for each in everything]
    answer = world.carol.post(f"{BASE}/action/batch-check", {"checks": checks}).json()["results"]
    assert [name for name, each in zip(everything, answer, strict=True) if each["allowed"]] == own
    of_carol = allowed(world.admin, path, principalUser=world.carol.id)
    assert of_carol == own, "a reader of assignments may read the actions of other users"
    requested = world.carol.get(f"{path}/actions", params={"principalUser": world.alice.id})
    assert error_triple(requested)[:2] == (403, "TableActionForbidden")
    both = {"principalUser": world.carol.id, "principalRole": str(uuid4())}
    assert world.admin.get(f"{path}/actions", params=both).status_code == 400


def test_warehouse_in_the_path_must_contain_the_object(world: World, ns: str) -> None:
    table = world.table(ns)
    for kind, id in (("table", table.uuid), ("namespace", world.namespace_id(ns))):
        elsewhere = f"{BASE}/warehouse/{uuid4()}/{kind}/{id}/actions"
        assert world.admin.get(elsewhere).status_code == 404


def test_actions_of_server_project_role_and_user(world: World) -> None:
    assert allowed(world.carol, f"{BASE}/server") == []
    assert {"create_project", "list_users", "provision_users"} <= set(allowed(world.admin, f"{BASE}/server"))
    assert not any(each.startswith("grant_") for each in allowed(world.admin, f"{BASE}/server"))
    assert error_triple(world.carol.get(f"{BASE}/server/actions", params={"principalUser": world.alice.id}))[0] == 403
    assert {"create_warehouse", "list_roles", "get_endpoint_statistics"} <= set(allowed(world.admin, f"{BASE}/project"))
    role = make(world)
    assert "update" in allowed(world.admin, f"{ROLE}/{role['id']}")
    assert add(world, role, "user", world.carol.id).status_code == 204
    assert allowed(world.carol, f"{ROLE}/{role['id']}") == ["read_metadata"], "a member can read the role's metadata"
    everything = ["delete", "read", "read_role_assignments", "update"]
    assert allowed(world.carol, f"{BASE}/user/{world.carol.id}") == everything
    assert allowed(world.admin, f"{BASE}/user/{world.carol.id}") == everything
    assert allowed(world.carol, f"{BASE}/user/{world.alice.id}") == ["read"]
    assert allowed(world.admin, f"{BASE}/user/{world.carol.id}", principalUser=world.alice.id) == ["read"]
    of_other = world.carol.get(f"{BASE}/user/{world.carol.id}/actions", params={"principalUser": world.alice.id})
    assert error_triple(of_other)[0] == 403
    assert error_triple(world.carol.get(f"{BASE}/user/oidc~ghost/actions"))[:2] == (404, "UserNotFound")


def _ids(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the members without names and the like."""
    return [{"type": each["type"], "id": each["id"]} for each in members]


def test_transitive_members_are_listed_completely_by_page(world: World) -> None:
    chain = [make(world) for _ in range(5)]
    for outer, inner in zip(chain, chain[1:], strict=False):
        assert add(world, outer, "role", inner["id"]).status_code == 204
    assert add(world, chain[-1], "user", world.carol.id).status_code == 204
    assert add(world, chain[0], "user", world.carol.id).status_code == 204, (
        "a user can be a direct and a nested member of one role"
    )
    path = f"{ROLE}/{chain[0]['id']}/members/transitive"
    expected = [{"type": "role", "id": id} for id in sorted(role["id"] for role in chain[1:])]
    expected += [{"type": "user", "id": id} for id in sorted({world.carol.id, world.admin.id})]
    assert _ids(world.admin.get(path).json()["members"]) == expected, (
        "each member must be listed once, and the creator as its owner"
    )
    seen: list[Any] = []
    token = None
    while True:
        page = world.admin.get(path, params={"pageSize": "2", **({"pageToken": token} if token else {})}).json()
        seen += _ids(page["members"])
        token = page.get("next-page-token")
        if token is None:
            break
    assert seen == expected
    users = world.admin.get(path, params={"type": "user"}).json()["members"]
    assert _ids(users) == [each for each in expected if each["type"] == "user"]
    outer_ids = {role["id"] for role in chain[:-1]}
    of = world.admin.get(f"{ROLE}/{chain[-1]['id']}/member-of/transitive").json()["roles"]
    assert {role["id"] for role in of} == outer_ids
    assert all(set(role) == {"id", "ident", "name"} for role in of)
    own = world.carol.get(f"{BASE}/user/{world.carol.id}/roles/transitive").json()["roles"]
    assert {role["id"] for role in own} >= {role["id"] for role in chain}
    assert world.admin.get(f"{BASE}/user/{world.carol.id}/roles/transitive").json()["roles"] == own
    direct = world.carol.get(f"{BASE}/user/{world.carol.id}/roles").json()["roles"]
    assert {role["id"] for role in direct} & {role["id"] for role in chain} == {chain[0]["id"], chain[-1]["id"]}


def test_external_membership_cycles_terminate_without_duplicate_members(world: World) -> None:
    """Requests cannot create a cycle, but tuples adopted from OpenFGA may contain one."""
    first, second = make(world), make(world)
    assert add(world, first, "role", second["id"]).status_code == 204
    world.sql(
        "insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by) "
        "values (gen_random_uuid(), 'assignee', 'role', $1, 'role', $2, 'external')",
        first["id"],
        second["id"],
    )
    try:
        for one, other in ((first, second), (second, first)):
            members = world.admin.get(f"{ROLE}/{one['id']}/members/transitive", params={"type": "role"}).json()
            assert _ids(members["members"]) == [{"type": "role", "id": other["id"]}]
            of = world.admin.get(f"{ROLE}/{one['id']}/member-of/transitive").json()["roles"]
            assert [role["id"] for role in of] == [other["id"]]
    finally:
        world.sql("delete from grants where principal_id = $1 and object_id = $2", first["id"], second["id"])


def test_members_are_hidden_from_callers_without_the_right_to_read_them(world: World) -> None:
    role = make(world)
    for way in ("members", "member-of"):
        hidden = world.carol.get(f"{ROLE}/{role['id']}/{way}/transitive")
        assert error_triple(hidden)[:2] == (404, "RoleIdNotFound")
    assert add(world, role, "user", world.carol.id).status_code == 204
    assert world.carol.get(f"{ROLE}/{role['id']}/members/transitive").status_code == 404
    assert error_triple(world.alice.get(f"{BASE}/user/{world.carol.id}/roles/transitive"))[0] == 403
    ghost = world.admin.get(f"{BASE}/user/oidc~{unique('ghost')}/roles/transitive")
    assert error_triple(ghost)[:2] == (404, "UserNotFound")
    bad = world.admin.get(f"{ROLE}/{role['id']}/members/transitive", params={"pageToken": "x"})
    assert error_triple(bad)[:2] == (400, "InvalidPaginationToken")
