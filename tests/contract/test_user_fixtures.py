# SPDX-License-Identifier: Apache-2.0
"""The users of the tests: `stranger` has no grants, and grants that a module leaves are removed after it."""

from __future__ import annotations

from tests.support.stack.world import AT_FIRST, World


def _holds(world: World) -> set[tuple[str, str]]:
    return {
        (name, row["privilege"])
        for name, person in world.people.items()
        if person is not world.admin
        for row in world.sql("select privilege from grants where principal_id = $1", person.id)
    }


def test_users_are_reset_to_their_initial_grants(world: World, ns: str) -> None:
    assert _holds(world) == AT_FIRST
    table = world.table(ns)
    role = world.admin.post("/management/v1/role", {"name": f"role of {ns}"}).json()["id"]
    world.grant("select", world.carol, "table", table.uuid)
    world.grant("assignee", world.steward, "role", role)
    world.grant("create", world.bob, "namespace", world.namespace_id(ns))
    world.strip(world.alice)
    assert (world.carol.get(table.path).status_code, world.alice.get(table.path).status_code) == (200, 404)
    world.people_as_at_first()
    assert _holds(world) == AT_FIRST
    assert (world.carol.get(table.path).status_code, world.alice.get(table.path).status_code) == (404, 200)


def test_stranger_is_a_provider_user_without_grants(world: World, ns: str) -> None:
    table, stranger, other = world.table(ns), world.stranger(), world.stranger()
    assert stranger.id != other.id
    assert stranger.get(table.path).status_code == 404
    world.grant("select", stranger, "table", table.uuid)
    assert (stranger.get(table.path).status_code, other.get(table.path).status_code) == (200, 404)
