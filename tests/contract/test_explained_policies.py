# SPDX-License-Identifier: Apache-2.0
"""Explanations of decisions that a data policy limits equal the permission checks."""

from __future__ import annotations

from tests.support.stack.bound_policies import ONE, bind, clean
from tests.support.stack.columns import wide
from tests.support.stack.explained import CHECK, explain, of_table
from tests.support.stack.grants import give
from tests.support.stack.lifecycle import fill
from tests.support.stack.world import World

__all__ = ["clean"]  # a fixture


def test_a_row_filter_restricts_reading_and_denies_writing(world: World, ns: str) -> None:
    table = wide(world, ns)
    fill(world, table.location)
    give(world, "table", table.uuid, "modify", {"user": world.carol.id})
    bind(world, ONE, "table", table.uuid)
    about = {"identity": {"user": world.carol.id}}
    found = {}
    for action in ("read_data", "write_data", "commit", "get_metadata"):
        operation = of_table(world, table.uuid, action)
        found[action] = explain(world.admin, operation, **about)
        allowed = world.admin.post(CHECK, {"operation": operation, **about}).json()["allowed"]
        assert allowed is (found[action]["decision"] == "allowed"), action
    assert found["read_data"]["decision"] == "restricted"
    assert (found["write_data"]["decision"], found["write_data"]["blocked-by"]) == ("denied", ["data-policy"])
    assert found["get_metadata"]["decision"] == "allowed"
