# SPDX-License-Identifier: Apache-2.0
"""Projects: rename, deletion when empty, and every spelling of their path."""

from __future__ import annotations

import pytest

from tests.support.stack import warehouses
from tests.support.stack.world import World, error_triple, unique

PROJECT = "/management/v1/project"


def named(world: World, id: str) -> str:
    found = world.admin.get(PROJECT, headers={"x-project-id": id})
    assert found.status_code == 200, found.text
    return str(found.json()["project-name"])


def test_a_project_is_renamed_and_keeps_its_id(world: World) -> None:
    id, name = warehouses.project(world), unique("Renamed")
    done = world.admin.post(f"{PROJECT}/rename", {"new-name": name}, headers={"x-project-id": id})
    assert done.status_code == 200
    assert named(world, id) == name
    other = warehouses.project(world)
    again = world.admin.post(f"{PROJECT}/rename", {"new-name": name.upper()}, headers={"x-project-id": other})
    assert error_triple(again)[:2] == (409, "ProjectNameAlreadyTaken")
    for bad in ({"new-name": ""}, {"new-name": "x" * 129}, {"name": "x"}, {}):
        assert world.admin.post(f"{PROJECT}/rename", bad, headers={"x-project-id": id}).status_code == 400


def test_empty_project_is_deleted_with_its_grants(world: World) -> None:
    id = warehouses.project(world)
    world.grant("describe", world.carol, "project", id)
    assert world.carol.get(PROJECT, headers={"x-project-id": id}).status_code == 200
    gone = world.admin.delete(PROJECT, headers={"x-project-id": id})
    assert (gone.status_code, gone.content) == (204, b"")
    assert world.tuples(f"project:{id}") == set()
    assert world.sql("select 1 from grants where object_type = 'project' and object_id = $1", id) == []
    for person in (world.admin, world.carol):
        assert error_triple(person.get(PROJECT, headers={"x-project-id": id}))[:2] == (404, "ProjectNotFound")
    assert id not in {each["project-id"] for each in world.admin.get("/management/v1/project-list").json()["projects"]}
    # A new project under the same id has no state of the old one.
    assert world.admin.post(PROJECT, {"project-name": unique("p"), "project-id": id}).status_code == 201
    assert error_triple(world.carol.get(PROJECT, headers={"x-project-id": id}))[:2] == (404, "ProjectNotFound")


def test_project_with_a_reused_id_lists_only_its_own_history(world: World) -> None:
    id = warehouses.project(world)
    header = {"x-project-id": id}
    world.grant("describe", world.carol, "project", id)
    world.revoke("describe", world.carol, "project", id)
    history = "/management/v1/project/grants/history"
    assert [each["privilege"] for each in world.admin.get(history, headers=header).json()["grants"]] == ["describe"]
    assert world.admin.delete(PROJECT, headers=header).status_code == 204
    assert world.admin.post(PROJECT, {"project-name": unique("p"), "project-id": id}).status_code == 201
    assert world.admin.get(history, headers=header).json()["grants"] == []
    world.grant("select", world.carol, "project", id)
    world.revoke("select", world.carol, "project", id)
    assert [each["privilege"] for each in world.admin.get(history, headers=header).json()["grants"]] == ["select"]


def test_project_id_is_blocked_until_its_grants_are_revoked(world: World) -> None:
    id = warehouses.project(world)
    assert world.admin.delete(PROJECT, headers={"x-project-id": id}).status_code == 204
    # As after a 503 of the deletion: OpenFGA has not confirmed that carol lost access.
    world.write_tuple(f"user:{world.carol.id}", "select", f"project:{id}")
    world.sql(
        "insert into outbox (subject_type, subject_id, relation, object_type, object_id, takes_away, not_before) "
        "values ('user', $1, 'select', 'project', $2, true, now() + interval '1 hour')",
        world.carol.id,
        id,
    )
    body = {"project-name": unique("p"), "project-id": id}
    refused = world.admin.post(PROJECT, body)
    assert error_triple(refused)[:2] == (409, "ProjectIdNotFree")
    assert "retries it at 20" in refused.text
    assert world.sql("select 1 from projects where id = $1", id) == []
    world.sql("update outbox set not_before = now() where object_id = $1", id)
    warehouses.until(lambda: world.sql("select 1 from outbox where object_id = $1", id) == [])
    assert world.admin.post(PROJECT, body).status_code == 201
    assert error_triple(world.carol.get(PROJECT, headers={"x-project-id": id}))[:2] == (404, "ProjectNotFound")


@pytest.mark.parametrize("content", ["a warehouse", "a role"])
def test_non_empty_project_is_not_deleted(world: World, content: str) -> None:
    id = warehouses.project(world)
    header = {"x-project-id": id}
    if content == "a role":
        made = world.admin.post("/management/v1/role", {"name": unique("r")}, headers=header).json()["id"]
        inside = f"/management/v1/role/{made}"
    else:
        inside = warehouses.make(world, headers=header).path
    assert error_triple(world.admin.delete(PROJECT, headers=header))[:2] == (409, "ProjectNotEmpty")
    assert world.admin.delete(inside).status_code == 204
    assert world.admin.delete(PROJECT, headers=header).status_code == 204


@pytest.mark.parametrize(
    ("needed", "less", "method", "path", "body"),
    [
        ("modify", "select", "POST", f"{PROJECT}/rename", {"new-name": "?"}),
        ("modify", "data_admin", "DELETE", PROJECT, None),
    ],
)
def test_changing_a_project_needs_modify(
    world: World, needed: str, less: str, method: str, path: str, body: dict[str, str] | None
) -> None:
    id, person = warehouses.project(world), world.contractor
    world.strip(person)
    body = body and {"new-name": unique("p")}

    def send() -> tuple[int, str]:
        answer = person.send(method, path, json=body, headers={"x-project-id": id})
        return (answer.status_code, "") if answer.is_success else error_triple(answer)[:2]

    assert send() == (404, "ProjectNotFound")
    world.grant(less, person, "project", id)
    assert send() == (403, "ProjectActionForbidden")
    world.grant(needed, person, "project", id)
    assert send()[0] in (200, 204)
    world.strip(person)


def test_older_project_paths_are_equivalent(world: World) -> None:
    id, name = warehouses.project(world), unique("p")
    assert world.admin.post(f"{PROJECT}/{id}/rename", {"new-name": name}).status_code == 200
    assert world.admin.get(f"{PROJECT}/{id}").json() == {"project-id": id, "project-name": name}
    # The path determines the project: a console's header does not change it.
    assert world.admin.get(f"{PROJECT}/{id}", headers={"x-project-id": world.project}).json()["project-id"] == id
    assert error_triple(world.carol.delete(f"{PROJECT}/{id}"))[:2] == (404, "ProjectNotFound")
    assert world.admin.delete(f"{PROJECT}/{id}").status_code == 204
    assert error_triple(world.admin.get(f"{PROJECT}/{id}"))[:2] == (404, "ProjectNotFound")
    default = world.admin.get("/management/v1/default-project").json()
    assert default["project-id"] == world.project
    same = world.admin.post("/management/v1/default-project/rename", {"new-name": default["project-name"]})
    assert same.status_code == 200
    # Not empty: the door admitted the request.
    assert error_triple(world.admin.delete("/management/v1/default-project"))[:2] == (409, "ProjectNotEmpty")


def test_a_request_that_names_two_projects_is_refused(world: World) -> None:
    id = warehouses.project(world)
    listed = world.admin.get("/management/v1/warehouse", params={"projectId": id})
    assert listed.json() == {"warehouses": []}
    agreed = world.admin.get("/management/v1/warehouse", params={"projectId": id}, headers={"x-project-id": id})
    assert agreed.json() == {"warehouses": []}
    header = {"x-project-id": world.project}
    for params, body in (({"projectId": id}, {}), ({}, {"project-id": id})):
        made = world.admin.post("/management/v1/role", {"name": unique("r"), **body}, params=params, headers=header)
        assert error_triple(made)[:2] == (400, "BadRequestException")


def test_project_list_holds_all_visible_projects(world: World) -> None:
    seen, unseen = warehouses.project(world), warehouses.project(world)
    person = world.contractor
    world.strip(person)
    world.grant("role_creator", person, "project", seen)
    mine = {each["project-id"] for each in person.get("/management/v1/project-list").json()["projects"]}
    assert mine == {seen}
    every = {each["project-id"] for each in world.admin.get("/management/v1/project-list").json()["projects"]}
    assert {seen, unseen, world.project} <= every
    assert every == {row["id"] for row in world.sql("select id from projects")}
    world.strip(person)
