# SPDX-License-Identifier: Apache-2.0
"""The data policies of a table, with their effect on the caller or on another principal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.stack.columns import wide
from tests.support.stack.data_policies import FILTER, MASK, POLICY, change, make, target
from tests.support.stack.tags import attach, define, tags_path
from tests.support.stack.world import Person, Table, World, send_until_decided

SUBJECTS: dict[str, Any] = {"applies-to": "subjects"}


@pytest.fixture(autouse=True)
def clean(world: World) -> Iterator[None]:
    """Remove the policies after the test: other tests of the stack bind none."""
    yield
    world.remove_policies()


def path_of(world: World, table: Table) -> str:
    return f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/data-policies"


def listed(world: World, table: Table, by: Person, **query: str) -> dict[str, dict[str, Any]]:
    """Return the listed policies by id."""
    found = send_until_decided(lambda: by.get(path_of(world, table), params=query))
    assert found.status_code == 200, found.text
    return {each["id"]: each for each in found.json()["data-policies"]}


def test_policies_of_table_namespace_and_tag_are_listed_with_their_effect(world: World, ns: str) -> None:
    table, other = wide(world, ns), wide(world, ns)
    assert listed(world, table, world.admin) == {}
    everyone, subjects = make(world), make(world, FILTER, **SUBJECTS)
    tagged, foreign = make(world), make(world)
    namespace = {"type": "namespace", "id": world.namespace_id(ns)}
    tag = define(world)
    assert attach(world, tag, tags_path(world, "table", table.uuid, "name")).status_code == 200
    for policy, places in (
        (everyone, [target(world, table), namespace]),
        (subjects, [namespace]),
        (tagged, [{"type": "tag", "id": tag["id"]}]),
        (foreign, [target(world, other)]),
    ):
        assert change(world, policy, add=places).status_code == 204
    user = world.stranger()
    world.grant("subject", user, "data-policy", subjects["id"])
    world.grant("exempt", user, "data-policy", everyone["id"])
    own = listed(world, table, world.admin)
    assert {id: each["restricts"] for id, each in own.items()} == {
        everyone["id"]: True,
        subjects["id"]: False,
        tagged["id"]: True,
    }
    assert own[everyone["id"]]["name"] == everyone["name"]
    assert own[tagged["id"]]["bound-to"] == [{"type": "tag", "id": tag["id"]}]
    found = [(each["type"], each["id"]) for each in own[everyone["id"]]["bound-to"]]
    assert found == [("namespace", namespace["id"]), ("table", table.uuid)]
    of_user = listed(world, table, world.admin, principalUser=user.id)
    assert {id: (each["restricts"], each["exempt"]) for id, each in of_user.items()} == {
        everyone["id"]: (False, True),
        subjects["id"]: (True, False),
        tagged["id"]: (True, False),
    }
    at = ["--gateway", world.base, "--token", world.admin.token, "--user", user.id]
    done = world.lakegate("data-policy", "list", "--table", f"{world.warehouse}/{table.uuid}", *at)
    effects = {line.split("\t")[0]: line.split("\t")[2] for line in done.stdout.splitlines()}
    assert effects == {everyone["id"]: "exempt", subjects["id"]: "restricts", tagged["id"]: "restricts"}, done.stderr


def test_names_are_for_readers_of_the_policy_and_the_list_is_for_grant_managers(world: World, ns: str) -> None:
    table, policy = wide(world, ns), make(world, MASK)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    manager, reader, stranger = (world.stranger() for _ in range(3))
    world.grant("manage_grants", manager, "table", table.uuid)
    world.grant("select", reader, "table", table.uuid)
    [found] = listed(world, table, manager).values()
    assert (found["id"], found["restricts"], "name" in found) == (policy["id"], True, False)
    assert policy["name"] not in str(found)
    assert reader.get(path_of(world, table)).status_code == 403
    assert stranger.get(path_of(world, table)).status_code == 404
    world.grant("ownership", manager, "data-policy", policy["id"])
    assert manager.get(f"{POLICY}/{policy['id']}").status_code == 200
    [named] = listed(world, table, manager).values()
    assert named["name"] == policy["name"]
