# SPDX-License-Identifier: Apache-2.0
"""Principals with slashes or backslashes in their ids: records, grants, roles, search and audit."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from tests.support.stack.world import Person, World, error_triple, send_until_decided, unique


@pytest.fixture(params=["spiffe://cluster.local/{}/../job", "DOMAIN\\{}"])
def job(world: World, request: pytest.FixtureRequest) -> Person:
    """Return a user with such an id, a record and no grants."""
    return world.stranger(request.param.format(unique("ns")))


def at(person: Person, rest: str = "") -> str:
    """Return the path of a user's record."""
    return f"/management/v1/user/{quote(person.id, safe='')}{rest}"


def test_a_user_is_read_changed_searched_and_deleted(world: World, job: Person) -> None:
    assert "/" in job.id or "\\" in job.id
    assert job.get("/management/v1/whoami").json()["id"] == job.id
    assert world.admin.get(at(job)).json()["id"] == job.id
    name = unique("renamed")
    changed = world.admin.send("PUT", at(job), json={"name": name, "user-type": "application"})
    assert (changed.status_code, changed.json()["name"]) == (200, name)
    found = world.admin.post("/management/v1/search/user", {"search": name}).json()["users"]
    # Similar names of users of other tests follow.
    assert found[0]["id"] == job.id
    assert world.admin.get(at(job, "/roles")).json()["roles"] == []
    assert world.admin.get(at(job, "/actions")).status_code == 200
    deleted = world.admin.delete(at(job))
    assert deleted.status_code == 204, deleted.text
    assert error_triple(world.admin.get(at(job)))[1:] == ("UserNotFound", f"User does not exist: {job.id}")
    [row] = world.sql(
        "select convert_from(record, 'UTF8') as text from audit_log where operation = 'delete_user' "
        "and convert_from(record, 'UTF8') like '%' || $1 || '%'",
        deleted.headers["x-request-id"],
    )
    assert json.dumps(job.id)[1:-1] in row["text"]


def test_a_path_of_an_id_is_not_another_route(world: World, job: Person) -> None:
    """`<id>%2Froles` is the id of another user and not the roles of this one."""
    assert error_triple(world.admin.get(f"{at(job)}%2Froles"))[1] == "UserNotFound"


def test_grants_and_roles_apply(world: World, job: Person, ns: str) -> None:
    table = world.table(ns)
    assert job.get(table.path).status_code == 404
    world.grant("select", job, "table", table.uuid)
    assert send_until_decided(lambda: job.get(table.path)).status_code == 200
    world.revoke("select", job, "table", table.uuid)
    made = world.admin.post("/management/v1/role", {"name": unique("role")})
    assert made.status_code == 201, made.text
    role = f"/management/v1/role/{made.json()['id']}/members/user/{quote(job.id, safe='')}"
    added = world.admin.post(
        f"/management/v1/permissions/role/{made.json()['id']}/assignments",
        {"writes": [{"type": "assignee", "user": job.id}]},
    )
    assert added.status_code == 204, added.text
    assert [each["id"] for each in world.admin.get(at(job, "/roles")).json()["roles"]] == [made.json()["id"]]
    removed = world.admin.delete(role)
    assert removed.status_code == 204, removed.text
    assert world.admin.get(at(job, "/roles")).json()["roles"] == []
