# SPDX-License-Identifier: Apache-2.0
"""Warehouses that only instance admins change: a setting names them, and it gives no other right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers.toxic import second_gateway
from tests.support.stack import warehouses
from tests.support.stack.warehouses import Made
from tests.support.stack.world import Person, World, error_triple, unique

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def gateway(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a gateway of which the steward is an instance admin."""
    log = tmp_path_factory.mktemp("managed") / "gateway.log"
    with second_gateway(world.ready, log, INSTANCE_ADMINS=world.steward.id) as (base, _):
        yield base


@pytest.fixture
def keeper(world: World, gateway: str) -> Iterator[Person]:
    """Yield the instance admin."""
    person = Person("keeper", world.steward.id, world.steward.token, gateway)
    world.strip(world.steward)
    yield person
    world.strip(world.steward)
    person.http.close()


@pytest.fixture
def owner(world: World, gateway: str) -> Iterator[Person]:
    """Yield the administrator as a client of the same gateway."""
    person = Person("owner", world.admin.id, world.admin.token, gateway)
    yield person
    person.http.close()


@pytest.fixture
def managed(world: World, keeper: Person) -> Made:
    """Create a warehouse that only instance admins change."""
    made = warehouses.make(world)
    world.grant("ownership", world.steward, "warehouse", made.id)
    done = keeper.post(f"{made.path}/managed-by", {"managed-by": "instance-admin"})
    assert done.status_code == 200, done.text
    assert done.json()["managed-by"] == "instance-admin"
    return made


def changes(world: World, made: Made) -> list[tuple[str, str, Any]]:
    storage = {
        "storage-profile": made.answer["storage-profile"],
        "storage-credential": warehouses.credential(world),
    }
    return [
        ("POST", "/rename", {"new-name": unique("w")}),
        ("POST", "/activate", None),
        ("POST", "/deactivate", None),
        ("POST", "/activate", None),
        ("POST", "/protection", {"protected": False}),
        ("POST", "/delete-profile", {"delete-profile": {"type": "hard"}}),
        ("POST", "/format-version-policy", {"allowed-format-versions": [1, 2, 3]}),
        ("POST", "/storage", storage),
        ("POST", "/storage-credential", {"new-storage-credential": warehouses.credential(world)}),
        ("DELETE", "", None),
    ]


def test_managed_warehouse_is_changed_by_instance_admins_only(
    world: World, owner: Person, keeper: Person, managed: Made
) -> None:
    for method, path, body in changes(world, managed):
        refused = owner.send(method, managed.path + path, json=body)
        assert error_triple(refused)[:2] == (403, "WarehouseManaged"), path
    report = owner.post(f"{managed.path}/storage/validate-profile", changes(world, managed)[7][2]).json()
    assert report["valid"] is False
    [check] = [each for each in report["checks"] if each["name"] == "spec-mutable"]
    assert check["error"]["type"] == "WarehouseManaged"
    # Data access in it follows the ordinary grants.
    assert owner.get(managed.table(owner)).status_code == 200
    managed.empty(world)
    world.grant("manage_storage", world.steward, "warehouse", managed.id)
    for method, path, body in changes(world, managed):
        assert keeper.send(method, managed.path + path, json=body).is_success, path


def test_only_instance_admins_change_the_managed_flag(
    world: World, owner: Person, keeper: Person, managed: Made
) -> None:
    for value in ("self-managed", "instance-admin"):
        refused = owner.post(f"{managed.path}/managed-by", {"managed-by": value})
        assert error_triple(refused)[:2] == (403, "InstanceAdminRequired")
    assert error_triple(keeper.post(f"{managed.path}/managed-by", {"managed-by": "nobody"}))[0] == 400
    assert keeper.post(f"{managed.path}/managed-by", {"managed-by": "self-managed"}).status_code == 200
    assert owner.post(f"{managed.path}/rename", {"new-name": unique("w")}).status_code == 200


def test_instance_admin_has_no_right_without_a_grant(world: World, keeper: Person, managed: Made) -> None:
    path = managed.table(world.admin)
    world.revoke("ownership", world.steward, "warehouse", managed.id)
    for method, at in (
        ("POST", f"{managed.path}/deactivate"),
        ("POST", f"{managed.path}/managed-by"),
        ("GET", managed.path),
        ("GET", path),
        ("DELETE", path),
    ):
        body = {"managed-by": "self-managed"} if at.endswith("by") else None
        assert keeper.send(method, at, json=body).status_code == 404, at
    world.grant("describe", world.steward, "warehouse", managed.id)
    assert error_triple(keeper.post(f"{managed.path}/deactivate"))[:2] == (403, "WarehouseActionForbidden")
    assert error_triple(keeper.get(f"{path}/credentials"))[0] == 403
    assert keeper.get("/management/v1/whoami").json()["is-instance-admin"] is True
    assert world.admin.get("/management/v1/whoami").json()["is-instance-admin"] is False


def test_assumed_role_is_no_instance_admin(world: World, keeper: Person, managed: Made) -> None:
    role = world.admin.post("/management/v1/role", {"name": unique("r")}).json()["id"]
    members = {"members": [{"type": "user", "id": world.steward.id}]}
    assert world.admin.post(f"/management/v1/role/{role}/members", members).status_code == 204
    writes = {"writes": [{"type": "ownership", "role": role}]}
    assert world.admin.post(world.grants_path("warehouse", managed.id), writes).status_code == 204
    refused = keeper.post(f"{managed.path}/deactivate", headers={"x-assume-role": role})
    assert error_triple(refused)[:2] == (403, "WarehouseManaged")


def test_instance_admins_create_warehouses_that_they_manage(world: World, keeper: Person) -> None:
    world.grant("create", world.steward, "project", world.project)
    managed: dict[str, Any] = {"managed-by": "instance-admin"}
    made = warehouses.make(world, keeper, **managed)
    assert made.answer["managed-by"] == "instance-admin"
    assert error_triple(world.admin.delete(made.path))[:2] == (403, "WarehouseManaged")
