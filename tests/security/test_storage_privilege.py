# SPDX-License-Identifier: Apache-2.0
"""Only `manage_storage` permits changes to the storage of a warehouse (LG-DEC-32).

A change of the endpoint or of the credential redirects the data of all users and outlives the right of the user who
made it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.support.stack import warehouses
from tests.support.stack.warehouses import Made
from tests.support.stack.world import Person, World, error_triple, send_until_decided, unique


@pytest.fixture(scope="module")
def location() -> str:
    return unique("guarded")


@pytest.fixture(scope="module")
def made(world: World, location: str) -> Made:
    """Create a warehouse of the administrator."""
    return warehouses.make(world, **warehouses.stored_at(world, location))


def changes(world: World, location: str) -> dict[str, dict[str, Any] | None]:
    """Return the body of each request that reads or changes the storage, by path suffix; each would succeed."""
    storage = {
        "storage-profile": warehouses.profile(world, location),
        "storage-credential": warehouses.credential(world),
    }
    credential = {"new-storage-credential": warehouses.credential(world)}
    return {
        "storage": storage,
        "storage-credential": credential,
        "storage/validate-profile": storage,
        "storage/validate-credential": credential,
        "storage/validate-access": None,
    }


def answers(world: World, person: Person, made: Made, location: str) -> set[tuple[int, str]]:
    requested = [
        send_until_decided(partial(person.post, f"{made.path}/{path}", body))
        for path, body in changes(world, location).items()
    ]
    return {(200, "") if each.status_code == 200 else error_triple(each)[:2] for each in requested}


def version(world: World, made: Made) -> int:
    [row] = world.sql("select profile_version from warehouses where id = $1::text::uuid", made.id)
    return int(row["profile_version"])


@pytest.mark.threat("LG-DEC-32")
@pytest.mark.parametrize("privilege", ["modify", "ownership", "manage_grants"])
def test_no_other_privilege_on_the_warehouse_changes_its_storage(
    world: World, made: Made, location: str, privilege: str
) -> None:
    person, before = world.stranger(), version(world, made)
    world.grant("describe", person, "warehouse", made.id)
    world.grant(privilege, person, "warehouse", made.id)
    assert answers(world, person, made, location) == {(403, "WarehouseActionForbidden")}
    elsewhere = {**warehouses.profile(world, location), "endpoint": "https://store.example"}
    body = {"storage-profile": elsewhere, "storage-credential": warehouses.credential(world)}
    assert error_triple(person.post(f"{made.path}/storage", body))[:2] == (403, "WarehouseActionForbidden")
    assert version(world, made) == before
    # None of these privileges permits granting `manage_storage` either.
    given = person.post(
        world.grants_path("warehouse", made.id), {"writes": [{"type": "manage_storage", "user": person.id}]}
    )
    assert given.status_code == 403


@pytest.mark.threat("LG-DEC-32")
def test_project_modify_and_data_admin_cannot_change_storage(world: World, made: Made, location: str) -> None:
    for privilege in ("modify", "data_admin"):
        person = world.stranger()
        world.grant(privilege, person, "project", world.project)
        try:
            assert answers(world, person, made, location) == {(403, "WarehouseActionForbidden")}, privilege
        finally:
            world.strip(person)


def test_manage_storage_changes_the_storage_and_nothing_else(world: World, made: Made, location: str) -> None:
    person = world.stranger()
    world.grant("manage_storage", person, "warehouse", made.id)
    table = made.table(world.admin)
    assert answers(world, person, made, location) == {(200, "")}
    assert person.get(made.path).status_code == 200
    assert person.get(table).status_code == 404
    assert person.get(f"{made.root}/namespaces").json()["namespaces"] == []
    renamed = person.post(f"{made.path}/rename", {"new-name": unique("w")})
    assert error_triple(renamed)[:2] == (403, "WarehouseActionForbidden")
    for privilege in ("manage_storage", "describe"):
        writes = [{"type": privilege, "user": person.id}]
        assert person.post(world.grants_path("warehouse", made.id), {"writes": writes}).status_code == 403
    world.revoke("manage_storage", person, "warehouse", made.id)
    assert answers(world, person, made, location) == {(404, "NoSuchWarehouseException")}


def test_the_creator_of_a_warehouse_manages_its_storage_and_a_later_owner_does_not(world: World) -> None:
    creator, heir, prefix = world.stranger("creator"), world.stranger("heir"), unique("own")
    world.grant("create", creator, "project", world.project)
    try:
        made = warehouses.make(world, creator, **warehouses.stored_at(world, prefix))
        assert ("manage_storage", f"warehouse:{made.id}") in world.tuples_of(f"user:{creator.id}", "warehouse")
        assert answers(world, creator, made, prefix) == {(200, "")}
        world.grant("ownership", heir, "warehouse", made.id)
        assert answers(world, heir, made, prefix) == {(403, "WarehouseActionForbidden")}
        # Security administrators can grant it without holding it.
        guard = world.stranger("guard")
        world.grant("security_admin", guard, "project", world.project)
        world.grant("manage_storage", heir, "warehouse", made.id, by=guard)
        assert answers(world, heir, made, prefix) == {(200, "")}
        world.strip(guard)
    finally:
        world.strip(creator)


def test_the_audit_names_the_change_of_the_storage_and_its_endpoint(world: World, made: Made, location: str) -> None:
    body = changes(world, location)
    for path, operation in (
        ("storage", "update_warehouse_storage"),
        ("storage-credential", "update_warehouse_storage_credential"),
    ):
        answer = send_until_decided(partial(world.admin.post, f"{made.path}/{path}", body[path]))
        assert answer.status_code == 200, answer.text
        request_id = answer.headers["x-request-id"]
        [record] = world.sql("select operation, outcome, record from audit_log where request_id = $1", request_id)
        assert (record["operation"], record["outcome"]) == (operation, "allowed")
        assert world.ready.s3.endpoint.encode() in record["record"]
        assert world.ready.s3.secret_key.encode() not in record["record"]
