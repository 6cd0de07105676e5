# SPDX-License-Identifier: Apache-2.0
"""Managed access on the real stack: rights that owners lose, rights that remain, and cleanup of its tuples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.support.rows.relations import Relations, soon
from tests.support.stack.checks import known_role
from tests.support.stack.grants import strangers  # noqa: F401 - a fixture
from tests.support.stack.world import Person, World, error_of

PERMISSIONS = "/management/v1/permissions"

pytestmark = pytest.mark.usefixtures("strangers")


def _set(person: Person, path: str, managed: bool) -> int:
    return person.post(f"{PERMISSIONS}/{path}/managed-access", {"managed-access": managed}).status_code


@pytest.fixture
def warehouse_flag(world: World) -> Iterator[str]:
    """Yield the path of the warehouse's flag; clear the flag afterwards."""
    path = f"warehouse/{world.warehouse}"
    yield path
    assert _set(world.admin, path, False) == 200


def _give(world: World, by: Person, kind: str, id: str) -> int:
    path = world.grants_path(kind, id)
    answer = by.post(path, {"writes": [{"type": "select", "user": world.steward.id}]})
    if answer.status_code == 204:
        world.revoke("select", world.steward, kind, id)
    return answer.status_code


def test_owners_under_managed_access_cannot_grant_but_keep_data_access(world: World, ns: str) -> None:
    world.grant("create", world.analyst, "namespace", world.namespace_id(ns))
    table = world.table(ns, by=world.analyst)
    path = f"namespace/{world.namespace_id(ns)}"
    assert _give(world, world.analyst, "table", table.uuid) == 204
    assert _set(world.admin, path, True) == 200
    assert _give(world, world.analyst, "table", table.uuid) == 403
    assert world.analyst.get(table.path).status_code == 200
    assert (
        world.commit(world.analyst, table.path, {"action": "set-properties", "updates": {"a": "b"}}).status_code == 200
    )
    assert _set(world.admin, path, False) == 200
    assert _give(world, world.analyst, "table", table.uuid) == 204


def test_flag_keeps_the_rights_of_its_objects_owner_and_grant_managers(world: World, ns: str) -> None:
    id = world.namespace_id(ns)
    world.grant("ownership", world.analyst, "namespace", id)
    table = world.table(ns, by=world.analyst)
    assert _set(world.analyst, f"namespace/{id}", True) == 200
    assert _give(world, world.analyst, "namespace", id) == 204, "the flag must restrict only objects below it"
    assert _give(world, world.analyst, "table", table.uuid) == 204, (
        "the owner of the namespace manages the grants of its tables"
    )
    world.grant("manage_grants", world.steward, "table", table.uuid)
    gives = world.steward.post(
        world.grants_path("table", table.uuid), {"writes": [{"type": "describe", "user": world.carol.id}]}
    )
    assert gives.status_code == 204
    world.revoke("describe", world.carol, "table", table.uuid)


def test_managed_warehouse_restricts_namespace_owners_at_any_depth(world: World, ns: str, warehouse_flag: str) -> None:
    world.grant("ownership", world.analyst, "namespace", world.namespace_id(ns))
    assert world.analyst.post(f"{world.root}/namespaces", {"namespace": [ns, "inner"]}).status_code == 200
    inner = world.namespace_id(f"{ns}%1Finner")
    assert _give(world, world.analyst, "namespace", inner) == 204
    assert _set(world.admin, warehouse_flag, True) == 200
    error_triple = {
        path: world.admin.get(f"{PERMISSIONS}/{path}").json()
        for path in (warehouse_flag, f"namespace/{world.namespace_id(ns)}", f"namespace/{inner}")
    }
    assert error_triple[warehouse_flag] == {"managed-access": True}
    below = {"managed-access": False, "managed-access-inherited": True}
    assert error_triple[f"namespace/{inner}"] == error_triple[f"namespace/{world.namespace_id(ns)}"] == below
    for id in (inner, world.namespace_id(ns)):
        assert _give(world, world.analyst, "namespace", id) == 403
        assert _set(world.analyst, f"namespace/{id}", True) == 403


def test_managed_access_restricts_members_and_assumers_of_an_owning_role(
    world: World, ns: str, warehouse_flag: str
) -> None:
    """The reference system refuses grants under an assumed role; the gateway decides for the role without a member."""
    id = world.namespace_id(ns)
    owner, manager = known_role(world), known_role(world)
    for role, privilege in ((owner, "ownership"), (manager, "manage_grants")):
        made = world.admin.post(world.grants_path("namespace", id), {"writes": [{"type": privilege, "role": role}]})
        assert made.status_code == 204
    world.admin.post(world.grants_path("role", owner), {"writes": [{"type": "assignee", "user": world.analyst.id}]})

    def may(role: str) -> bool:
        operation = {"namespace": {"namespace-id": id, "action": "grant_select"}}
        body = {"operation": operation, "identity": {"role": role}}
        return bool(world.admin.post(f"{PERMISSIONS}/check", body).json()["allowed"])

    assert (may(owner), may(manager), _give(world, world.analyst, "namespace", id)) == (True, True, 204)
    assert _set(world.admin, warehouse_flag, True) == 200
    assert (may(owner), may(manager), _give(world, world.analyst, "namespace", id)) == (False, True, 403)


def test_managed_access_flag_is_set_by_grant_managers_and_read_by_viewers(world: World, ns: str) -> None:
    path = f"namespace/{world.namespace_id(ns)}"
    world.grant("modify", world.analyst, "namespace", world.namespace_id(ns))
    world.grant("manage_grants", world.steward, "namespace", world.namespace_id(ns))
    assert world.analyst.get(f"{PERMISSIONS}/{path}").status_code == 200
    assert world.carol.get(f"{PERMISSIONS}/{path}").status_code == 404
    assert (_set(world.analyst, path, True), _set(world.carol, path, True)) == (403, 404)
    assert (_set(world.steward, path, True), _set(world.steward, path, True)) == (200, 200)
    assert world.steward.get(f"{PERMISSIONS}/{path}").json()["managed-access"] is True
    refused = world.admin.post(f"{PERMISSIONS}/{path}/managed-access", {"managed-access": "yes"})
    assert (refused.status_code, error_of(refused)["type"]) == (400, "BadRequestException")


def test_managed_access_advances_the_revision_and_drops_its_tuples(world: World, ns: str) -> None:
    id = world.namespace_id(ns)

    def revision() -> object:
        return world.sql("select revision from warehouses where id = $1::text::uuid", world.warehouse)[0]["revision"]

    before = revision()
    assert _set(world.admin, f"namespace/{id}", True) == 200
    assert revision() != before
    flag = {("user:*", "managed_access"), ("role:*", "managed_access")}
    assert flag <= world.tuples(f"namespace:{id}")
    with closing(Relations(world)) as relations:
        relations.delete(*((user, relation, f"namespace:{id}") for user, relation in flag))
    soon(lambda: flag <= world.tuples(f"namespace:{id}"), seconds=30)
    assert world.admin.delete(f"{world.root}/namespaces/{ns}").status_code == 204
    assert world.tuples(f"namespace:{id}") == set()
