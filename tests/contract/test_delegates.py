# SPDX-License-Identifier: Apache-2.0
"""`GET /whoami/delegates`: each user sees the engines that may act for it, and no object that it does not see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.stack.roles import make
from tests.support.stack.warehouses import creation
from tests.support.stack.world import Person, World, error_triple, send_until_decided

PATH = "/management/v1/whoami/delegates"


@pytest.fixture
def engine(world: World) -> Iterator[Person]:
    """Yield an engine without grants, and remove its grants afterwards."""
    world.strip(world.etl)
    yield world.etl
    world.strip(world.etl)


@pytest.fixture
def user(world: World) -> Iterator[Person]:
    """Yield a user that sees the warehouse and administers nothing."""
    person = world.stranger("delegator")
    world.grant("describe", person, "warehouse", world.warehouse)
    yield person
    world.strip(person)


def give(
    world: World, engine: Person, limits: dict[str, Any] | None = None, *, on: str = "", expires_at: str = ""
) -> None:
    """Grant `delegate` on a warehouse, in place of the former grant."""
    entry: dict[str, Any] = {"privilege": "delegate", "principal": {"user": engine.id}}
    entry |= {"expires-at": expires_at} if expires_at else {}
    entry |= {} if limits is None else {"acts-for": limits}
    answer = world.admin.post(f"/management/v1/warehouse/{on or world.warehouse}/grants", {"writes": [entry]})
    assert answer.status_code == 204, answer.text


def seen(person: Person, holder: str, **more: Any) -> list[dict[str, Any]]:
    """Return the listed grants of one user or role, of all pages."""
    return [
        each for each in pages(person, **more) if holder in (each["holder"].get("user"), each["holder"].get("role"))
    ]


def pages(person: Person, **more: Any) -> list[dict[str, Any]]:
    """Return the listed grants of all pages, which hold one each. Other tests may have left some of other engines."""
    listed, token = [], ""
    while True:
        answer = person.get(PATH, params={"pageSize": 1, "pageToken": token}, **more)
        assert answer.status_code == 200, answer.text
        listed += answer.json()["delegates"]
        token = answer.json().get("next-page-token", "")
        if not token:
            return listed


def test_grant_for_every_user_is_listed_with_its_holder_object_limits_and_expiry(
    world: World, engine: Person, user: Person
) -> None:
    expiry = "2990-01-01T00:00:00Z"
    give(world, engine, {"networks": ["192.0.2.0/24"]}, expires_at=expiry)
    [grant] = seen(user, engine.id)
    assert grant["holder"] == {"user": engine.id, "name": grant["holder"]["name"]}
    assert grant["resource"] == {
        "type": "warehouse",
        "name": world.ready.warehouse,
        "project-id": world.project,
        "warehouse-id": world.warehouse,
    }
    assert grant["acts-for"] == {"administrators": False, "networks": ["192.0.2.0/24"]}
    assert grant["expires-at"] == expiry


def test_limits_include_the_user_by_id_or_role_and_name_no_other_principal(
    world: World, engine: Person, user: Person
) -> None:
    own, other = make(world), make(world)
    member = {"writes": [{"type": "assignee", "user": user.id}]}
    path = f"/management/v1/permissions/role/{own['id']}/assignments"
    assert world.admin.post(path, member).status_code == 204
    give(world, engine, {"users": [user.id, world.bob.id]})
    assert [each["acts-for"] for each in seen(user, engine.id)] == [{"administrators": False, "users": [user.id]}]
    limits = {"users": [world.bob.id], "roles": [own["id"], other["id"]]}
    give(world, engine, limits)
    assert [each["acts-for"] for each in seen(user, engine.id)] == [{"administrators": False, "roles": [own["id"]]}]
    assert world.admin.post(path, {"deletes": member["writes"]}).status_code == 204
    assert seen(user, engine.id) == []
    for role in (own, other):
        assert world.admin.delete(f"/management/v1/role/{role['id']}").status_code == 204


def test_administrator_sees_only_grants_that_include_administrators(world: World, engine: Person, user: Person) -> None:
    give(world, engine)
    assert len(seen(user, engine.id)) == 1
    assert seen(world.admin, engine.id) == []
    world.grant("manage_grants", user, "warehouse", world.warehouse)
    assert seen(user, engine.id) == []
    give(world, engine, {"administrators": True})
    for person in (user, world.admin):
        assert [each["acts-for"] for each in seen(person, engine.id)] == [{"administrators": True}]


def test_assumed_role_does_not_hide_that_the_user_is_an_administrator(
    world: World, engine: Person, user: Person
) -> None:
    role = make(world)
    writes = {"writes": [{"type": "assignee", "user": user.id}]}
    assert world.admin.post(f"/management/v1/permissions/role/{role['id']}/assignments", writes).status_code == 204
    reading = {"writes": [{"type": "describe", "role": role["id"]}]}
    assert world.admin.post(world.grants_path("warehouse", world.warehouse), reading).status_code == 204
    give(world, engine)
    assumed = {"x-assume-role": role["id"]}
    assert len(seen(user, engine.id, headers=assumed)) == 1
    world.grant("manage_grants", user, "warehouse", world.warehouse)
    assert seen(user, engine.id, headers=assumed) == []
    assert world.admin.delete(f"/management/v1/role/{role['id']}").status_code == 204


def test_ended_grant_is_absent(world: World, engine: Person, user: Person) -> None:
    give(world, engine)
    world.revoke("delegate", engine, "warehouse", world.warehouse)
    assert seen(user, engine.id) == []
    give(world, engine, expires_at="2990-01-01T00:00:00Z")
    assert len(seen(user, engine.id)) == 1
    expire = "update grants set expires_at = now() where privilege = 'delegate' and principal_id = $1"
    world.sql(expire, engine.id)
    assert seen(user, engine.id) == []


def test_warehouse_that_the_user_does_not_see_is_not_disclosed(world: World, engine: Person, user: Person) -> None:
    made = send_until_decided(lambda: world.admin.post("/management/v1/warehouse", creation(world)))
    hidden = made.json()["warehouse-id"]
    for on in (hidden, world.warehouse):
        give(world, engine, on=on)
    answers = [user.get(PATH, params={"pageSize": 1}), user.get(PATH)]
    assert all(hidden not in answer.text for answer in answers)
    assert answers[0].json()["delegates"] == pages(user)[:1], "the hidden grant must not shorten the page"
    assert len(seen(user, engine.id)) == 1
    assert world.stranger("outsider").get(PATH).json() == {"delegates": []}
    world.grant("describe", user, "warehouse", hidden)
    assert {each["resource"]["warehouse-id"] for each in seen(user, engine.id)} == {hidden, world.warehouse}
    assert world.admin.delete(f"/management/v1/warehouse/{hidden}").status_code == 204


def test_grant_on_the_project_to_a_role_names_the_role_to_its_readers_alone(world: World, user: Person) -> None:
    role = make(world)
    giving = {"writes": [{"type": "delegate", "role": role["id"]}]}
    assert world.admin.post(world.grants_path("project", world.project), giving).status_code == 204
    [grant] = seen(user, role["id"])
    assert grant["holder"] == {"role": role["id"]}
    assert grant["resource"]["type"] == "project"
    assert "warehouse-id" not in grant["resource"]
    writes = {"writes": [{"type": "assignee", "user": user.id}]}
    assert world.admin.post(f"/management/v1/permissions/role/{role['id']}/assignments", writes).status_code == 204
    [grant] = seen(user, role["id"])
    assert grant["holder"] == {"role": role["id"], "name": role["name"]}
    assert world.admin.delete(f"/management/v1/role/{role['id']}").status_code == 204


def test_invalid_page_token_is_refused(user: Person) -> None:
    assert error_triple(user.get(PATH, params={"pageToken": "x"}))[0] == 400
