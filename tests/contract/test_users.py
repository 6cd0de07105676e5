# SPDX-License-Identifier: Apache-2.0
"""User records: search, changes, and deletion with all grants."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stack.roles import ROLE, add, make
from tests.support.stack.world import World, error_triple, unique

USER = "/management/v1/user"


def provision(world: World, name: str) -> str:
    """Create a user with this name; return the id."""
    id = f"oidc~{unique('zoe')}"
    made = world.admin.post(USER, {"id": id, "name": name, "email": f"{name}@example.com", "user-type": "human"})
    assert made.status_code == 201, made.text
    return id


def test_user_search_ranks_the_best_match_first_in_any_script(world: World) -> None:
    id = provision(world, "Łukasz Żółw")
    close = provision(world, "Łukaszewski Żółwik")
    found = world.carol.post("/management/v1/search/user", {"search": "łukasz żółw"}).json()["users"]
    assert [each["id"] for each in found][:1] == [id]
    assert close in [each["id"] for each in found]
    for gone in (id, close):
        assert world.admin.delete(f"{USER}/{gone}").status_code == 204


def test_users_are_found_by_parts_of_their_name_and_id(world: World) -> None:
    name = unique("Zoe_100%")
    id = provision(world, name)
    for text in (name.upper(), name[2:], id):
        found = world.carol.post("/management/v1/search/user", {"search": text}).json()["users"]
        assert {"id": id, "name": name, "user-type": "human"} in found
    assert world.admin.get(f"{USER}/{id}").json()["email"] == f"{name}@example.com", (
        "administrators see an unverified address"
    )
    mistyped = world.carol.post("/management/v1/search/user", {"search": name.replace("Zoe", "Zeo")}).json()["users"]
    assert id in [each["id"] for each in mistyped], "a misspelt search must find the user"
    for text in ("%", "_", "qqqqxxxxqqqq"):
        unmatched = world.carol.post("/management/v1/search/user", {"search": text}).json()
        assert unmatched == {"users": []}, "search text must not be used as a pattern"
    many = world.carol.post("/management/v1/search/user", {"search": ""}).json()["users"]
    assert len(many) <= 10
    assert world.carol.post("/management/v1/search/user", {"search": "x" * 65}).status_code == 400


def test_users_change_their_own_record_and_administrators_any(world: World) -> None:
    id = provision(world, unique("zoe"))
    body = {"name": "Zoe", "user-type": "application"}
    assert error_triple(world.carol.send("PUT", f"{USER}/{id}", json=body))[0] == 403
    changed = world.admin.send("PUT", f"{USER}/{id}", json=body)
    assert changed.status_code == 200
    assert (changed.json()["name"], changed.json()["user-type"], "email" in changed.json()) == (
        "Zoe",
        "application",
        False,
    )
    assert changed.json()["last-updated-with"] == "update-endpoint"
    own = world.carol.send("PUT", f"{USER}/{world.carol.id}", json={"name": "carol", "user-type": "human"})
    assert own.status_code == 200
    assert error_triple(world.admin.send("PUT", f"{USER}/oidc~ghost", json=body))[:2] == (404, "UserNotFound")
    assert world.admin.send("PUT", f"{USER}/{id}", json={"name": "no kind"}).status_code == 400


def test_users_list_their_own_roles_and_administrators_any(world: World) -> None:
    role = make(world)
    assert add(world, role, "user", world.carol.id).status_code == 204
    path = f"{USER}/{world.carol.id}/roles"
    named = {key: role[key] for key in ("id", "ident", "name")}
    for person in (world.carol, world.admin):
        assert named in person.get(path).json()["roles"]
    assert error_triple(world.alice.get(path))[0] == 403
    acting = {"x-assume-role": role["id"]}
    assert error_triple(world.carol.get(path, headers=acting))[0] == 403, (
        "an assumed role must not have the caller's own rights"
    )
    assert world.admin.delete(f"{ROLE}/{role['id']}").status_code == 204
    assert named not in world.carol.get(path).json()["roles"]


@pytest.mark.parametrize("below", ["", "/transitive"])
def test_roles_of_a_user_have_pages_only_on_request(world: World, below: str) -> None:
    """Lakekeeper's clients send no parameter here, and expect the whole list without a token."""
    made = [make(world) for _ in range(3)]
    for role in made:
        assert add(world, role, "user", world.carol.id).status_code == 204
    path = f"{USER}/{world.carol.id}/roles{below}"
    for person in (world.carol, world.admin):
        whole = person.get(path).json()
        assert set(whole) == {"roles"}
        assert {each["id"] for each in made} <= {each["id"] for each in whole["roles"]}
        found, token = [], None
        while True:
            page = person.get(path, params={"pageSize": 2} | ({} if token is None else {"pageToken": token})).json()
            assert len(page["roles"]) <= 2
            found += page["roles"]
            if (token := page.get("next-page-token")) is None:
                break
        assert found == whole["roles"]
        assert error_triple(person.get(path, params={"pageToken": "x"}))[0] == 400
    for role in made:
        assert world.admin.delete(f"{ROLE}/{role['id']}").status_code == 204


def test_deleted_user_leaves_no_grants_or_tuples_to_a_namesake(world: World, ns: str) -> None:
    table, role = world.table(ns), make(world)
    id = provision(world, unique("zoe"))
    for kind, on in (("table", table.uuid), ("project", world.project)):
        given = world.admin.post(world.grants_path(kind, on), {"writes": [{"type": "select", "user": id}]})
        assert given.status_code == 204
    assert add(world, role, "user", id).status_code == 204
    held = tuples(world, id)
    assert {relation for relation, _ in held} >= {"select", "traverse", "assignee"}
    assert error_triple(world.carol.delete(f"{USER}/{id}"))[0] == 403
    assert world.admin.delete(f"{USER}/{id}").status_code == 204
    assert tuples(world, id) == set()
    assert world.sql("select 1 from grants where principal_id = $1", id) == []
    assert error_triple(world.admin.delete(f"{USER}/{id}"))[:2] == (404, "UserNotFound")
    assert world.admin.get(f"{ROLE}/{role['id']}/members").json() == {"members": []}
    assert world.admin.post(USER, {"id": id, "name": "Namesake"}).status_code == 201
    assert tuples(world, id) == set()


def tuples(world: World, id: str) -> set[Any]:
    """Return all tuples of a user."""
    encoded = id.replace("~", "%7E")
    found: set[Any] = set()
    for type in ("role", "project", "warehouse", "namespace", "table"):
        for user in (f"user:{id}", f"user:{encoded}"):
            found |= world.tuples_of(user, type)
    return found


def test_self_deletion_removes_all_rights(world: World) -> None:
    id = provision(world, unique("zoe"))
    assert world.admin.get(f"{USER}/{id}").status_code == 200
    assert error_triple(world.carol.delete(f"{USER}/{id}"))[0] == 403
    before = world.carol.get("/management/v1/whoami").json()
    try:
        assert world.carol.delete(f"{USER}/{world.carol.id}").status_code == 204
        assert error_triple(world.carol.get("/management/v1/whoami"))[:2] == (404, "UserNotFound")
    finally:
        again = world.carol.post(USER, {"name": before["name"], "user-type": before["user-type"]})
    assert again.status_code == 201
