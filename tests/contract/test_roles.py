# SPDX-License-Identifier: Apache-2.0
"""Roles: their records, their members, and complete cleanup of a deleted role."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack.roles import ROLE, add, make
from tests.support.stack.world import World, error_triple, unique


def test_a_role_is_created_read_changed_and_found(world: World) -> None:
    name = unique("Steward")
    made = world.admin.post(ROLE, {"name": name, "description": "They care"})
    assert made.status_code == 201
    role = made.json()
    id = role["id"]
    assert (role["name"], role["description"], role["project-id"]) == (name, "They care", world.project)
    assert (role["provider-id"], role["source-id"], role["ident"]) == ("lakekeeper", id, f"lakekeeper~{id}")
    assert world.admin.get(f"{ROLE}/{id}").json() == role
    metadata = world.admin.get(f"{ROLE}/{id}/metadata").json()
    assert metadata == {k: role[k] for k in ("id", "ident", "name", "project-id", "provider-id", "source-id")}

    changed = world.admin.post(f"{ROLE}/{id}", {"name": name + "s"})
    assert changed.status_code == 200
    assert (changed.json()["name"], "description" in changed.json()) == (name + "s", False)
    assert changed.json()["updated-at"]
    source = unique("cn=")
    moved = world.admin.send("PUT", f"{ROLE}/{id}/source-system", json={"provider-id": "ldap", "source-id": source})
    assert moved.json()["ident"] == f"ldap~{source}"
    for query in ({"roleIds": id}, {"sourceIds": source}, {"providerIds": "ldap", "sourceIds": source}):
        assert [each["id"] for each in world.admin.get(ROLE, params=query).json()["roles"]] == [id]
    assert world.admin.get(ROLE, params={"providerIds": "okta", "sourceIds": source}).json()["roles"] == []
    for text in (name[2:].upper(), name.replace("ew", "we")):
        found = world.admin.post("/management/v1/search/role", {"search": text}).json()["roles"]
        assert found[0]["id"] == id, "a misspelt search must return the best match first"
        assert len(found) <= 10
    assert world.admin.post("/management/v1/search/role", {"search": "qqqqxxxx"}).json() == {"roles": []}
    assert world.admin.post("/management/v1/search/role", {"search": "x" * 65}).status_code == 400


def test_role_pages_list_every_role_once(world: World) -> None:
    made = {make(world)["id"] for _ in range(5)}
    seen: list[str] = []
    token = None
    while True:
        params = {"pageSize": "2", **({"pageToken": token} if token else {})}
        page = world.admin.get(ROLE, params=params).json()
        assert len(page["roles"]) <= 2
        seen += [role["id"] for role in page["roles"]]
        token = page.get("next-page-token")
        if token is None:
            break
    assert len(seen) == len(set(seen))
    assert made <= set(seen)


def test_role_names_and_sources_are_unique_in_a_project(world: World) -> None:
    role = make(world)
    twin = {"name": role["name"].upper()}
    assert error_triple(world.admin.post(ROLE, twin))[:2] == (409, "RoleNameAlreadyExists")
    assert error_triple(world.admin.post(f"{ROLE}/{make(world)['id']}", twin))[:2] == (409, "RoleNameAlreadyExists")
    same = {"name": unique("r"), "source-id": role["id"]}
    assert error_triple(world.admin.post(ROLE, same))[:2] == (409, "RoleSourceIdConflict")
    assert error_triple(world.admin.post(ROLE, {"name": unique("r"), "provider-id": "system"}))[:2] == (
        400,
        "ReservedRoleProvider",
    )


@pytest.mark.parametrize(
    "body",
    [{}, {"name": ""}, {"name": "a\n"}, {"name": "x", "provider-id": "Ldap"}, {"name": "x", "source-id": "a\nb"}],
    ids=["no name", "empty name", "line feed", "letter case of the provider", "control character"],
)
def test_invalid_role_name_is_400(world: World, body: dict[str, str]) -> None:
    assert world.admin.post(ROLE, body).status_code == 400


def test_strangers_see_no_role_and_members_only_its_name(world: World) -> None:
    role = make(world)
    path = f"{ROLE}/{role['id']}"
    for gone in (path, f"{path}/metadata", f"{path}/members", f"{path}/member-of"):
        assert error_triple(world.carol.get(gone))[:2] == (404, "RoleIdNotFound")
        absent = gone.replace(role["id"], str(uuid4()))
        assert error_triple(world.admin.get(absent))[:2] == (404, "RoleIdNotFound")
    assert world.carol.delete(path).status_code == 404
    assert world.carol.post(ROLE, {"name": unique("mine")}).status_code == 404
    assert world.carol.get(ROLE).status_code == 404
    assert add(world, role, "user", world.carol.id).status_code == 204
    assert world.carol.get(f"{path}/metadata").json()["name"] == role["name"]
    assert world.carol.get(path).status_code == 404
    assert world.carol.get(f"{path}/members").status_code == 404
    assert add(world, role, "user", world.alice.id, by=world.carol).status_code == 404
    assert world.admin.delete(path).status_code == 204


def test_role_creator_owns_and_assigns_it(world: World) -> None:
    world.grant("role_creator", world.steward, "project", world.project)
    try:
        role = make(world, by=world.steward)
        assert add(world, role, "user", world.carol.id, by=world.steward).status_code == 204
        assert add(world, role, "user", world.carol.id, by=world.steward).status_code == 204, (
            "a repeated membership change must succeed"
        )
        members = f"{ROLE}/{role['id']}/members"
        [member] = world.steward.get(members).json()["members"]
        assert member == {"type": "user", "id": world.carol.id, "name": "carol", "user-type": "human"}
        assert world.steward.get(members, params={"type": "role"}).json() == {"members": []}
        for _ in range(2):
            assert world.steward.delete(f"{members}/user/{world.carol.id}").status_code == 204
        assert world.steward.get(members).json() == {"members": []}
        assert error_triple(add(world, role, "user", "oidc~nobody-knows"))[:2] == (404, "GrantTargetNotFound")
        assert world.steward.delete(f"{ROLE}/{role['id']}").status_code == 204
    finally:
        world.revoke("role_creator", world.steward, "project", world.project)


def test_nested_roles_inherit_rights_and_refuse_cycles(world: World, ns: str) -> None:
    table = world.table(ns)
    outer, inner = make(world), make(world)
    assert add(world, outer, "role", inner["id"]).status_code == 204
    assert error_triple(add(world, inner, "role", outer["id"]))[:2] == (409, "RoleMembershipCycle")
    assert error_triple(add(world, inner, "role", inner["id"]))[:2] == (400, "SelfAssignment")
    of = world.admin.get(f"{ROLE}/{inner['id']}/member-of").json()
    assert of == {"roles": [{k: outer[k] for k in ("id", "ident", "name")}]}
    [member] = world.admin.get(f"{ROLE}/{outer['id']}/members").json()["members"]
    assert member == {"type": "role", **{k: inner[k] for k in ("id", "ident", "name")}}
    given = world.admin.post(
        world.grants_path("table", table.uuid), {"writes": [{"type": "select", "role": outer["id"]}]}
    )
    assert given.status_code == 204
    assert world.carol.get(table.path).status_code == 404
    assert add(world, inner, "user", world.carol.id).status_code == 204
    assert world.carol.get(table.path).status_code == 200
    assert world.admin.delete(f"{ROLE}/{outer['id']}/members/role/{inner['id']}").status_code == 204
    assert world.carol.get(table.path).status_code == 404


def test_members_have_no_name_of_another_project_and_no_unverified_address(world: World) -> None:
    role, project, user = make(world), unique("project"), f"oidc~{unique('una')}"
    made = world.admin.post("/management/v1/project", {"project-name": project, "project-id": project})
    assert made.status_code == 201, made.text
    elsewhere = world.admin.post(ROLE, {"name": "visitors"}, headers={"x-project-id": project}).json()
    stated = {"id": user, "name": "Una", "email": "una@example.com", "user-type": "human"}
    assert world.admin.post("/management/v1/user", stated).status_code == 201
    assert add(world, role, "user", user).status_code == 204
    assert add(world, role, "role", elsewhere["id"]).status_code == 204
    members = world.admin.get(f"{ROLE}/{role['id']}/members").json()["members"]
    assert sorted(members, key=lambda each: each["type"]) == [
        {"type": "role", "id": elsewhere["id"]},
        {"type": "user", "id": user, "name": "Una", "user-type": "human"},
    ]


def test_roles_that_a_role_is_in_are_listed_by_page(world: World) -> None:
    inner = make(world)
    outer = sorted((make(world) for _ in range(4)), key=lambda role: (role["name"].casefold(), role["id"]))
    for each in outer:
        assert add(world, each, "role", inner["id"]).status_code == 204
    for path in ("member-of", "member-of/transitive"):
        found: list[str] = []
        token = None
        while token is not None or not found:
            query = {"pageSize": "2"} | ({} if token is None else {"pageToken": token})
            page = world.admin.get(f"{ROLE}/{inner['id']}/{path}", params=query).json()
            assert len(page["roles"]) == 2, "a full page that is the last one has no token"
            found += [each["id"] for each in page["roles"]]
            token = page.get("next-page-token")
        assert found == [each["id"] for each in outer], path
        refused = world.admin.get(f"{ROLE}/{inner['id']}/{path}", params={"pageToken": "no token"})
        assert error_triple(refused)[:2] == (400, "InvalidPaginationToken")


def test_members_of_provider_roles_cannot_be_assigned_manually(world: World) -> None:
    more: dict[str, Any] = {"provider-id": "ldap", "source-id": unique("cn=")}
    role = make(world, **more)
    assert error_triple(add(world, role, "user", world.carol.id))[:2] == (400, "RoleNotManuallyAssignable")
    given = {"writes": [{"type": "assignee", "user": world.carol.id}]}
    assert error_triple(world.admin.post(world.grants_path("role", role["id"]), given))[:2] == (
        400,
        "RoleNotManuallyAssignable",
    )
    own = {"provider-id": "lakekeeper", "source-id": role["id"]}
    assert world.admin.send("PUT", f"{ROLE}/{role['id']}/source-system", json=own).status_code == 200
    assert add(world, role, "user", world.carol.id).status_code == 204


def test_role_deletion_removes_its_grants_tuples_and_members_rights(world: World, ns: str) -> None:
    table = world.table(ns)
    role, outer = make(world), make(world)
    id = role["id"]
    assert add(world, role, "user", world.carol.id).status_code == 204
    assert add(world, outer, "role", id).status_code == 204
    for kind, on in (("table", table.uuid), ("project", world.project)):
        given = world.admin.post(world.grants_path(kind, on), {"writes": [{"type": "select", "role": id}]})
        assert given.status_code == 204
    assert world.carol.get(table.path).status_code == 200
    assert world.tuples(f"role:{id}")
    assert world.tuples_of(f"role:{id}#assignee", "table")
    assert world.admin.delete(f"{ROLE}/{id}").status_code == 204
    assert world.carol.get(table.path).status_code == 404, "a former member must be refused by the next request"
    assert world.tuples(f"role:{id}") == set()
    for type in ("role", "project", "warehouse", "namespace", "table"):
        assert world.tuples_of(f"role:{id}#assignee", type) == set()
    left = "select 1 from grants where principal_id = $1 or object_id = $1"
    assert world.sql(left, id) == []
    assert error_triple(world.admin.get(f"{ROLE}/{id}"))[:2] == (404, "RoleIdNotFound")
    assert world.admin.get(f"{ROLE}/{outer['id']}/members").json() == {"members": []}
    assert error_triple(add(world, role, "user", world.carol.id))[:2] == (404, "RoleIdNotFound")
