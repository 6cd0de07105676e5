# SPDX-License-Identifier: Apache-2.0
"""A privilege that is meant to bind its holder is never handed out by that holder."""

from __future__ import annotations

import pytest

from tests.support.stack.world import Table, World

BINDING = ("manage_tags", "approve_changes", "enforcer", "delegate", "inspector", "auditor")
#: The privileges of each kind of object.
ON = {"warehouse": BINDING, "namespace": BINDING[:3], "table": BINDING[:3]}


def ids(world: World, table: Table, ns: str) -> dict[str, str]:
    return {"warehouse": world.warehouse, "namespace": world.namespace_id(ns), "table": table.uuid}


@pytest.mark.parametrize("right", ["ownership", "manage_grants"])
@pytest.mark.parametrize("on", ["warehouse", "namespace", "table"])
def test_owners_and_grant_managers_grant_nothing_that_binds_them(
    world: World, table: Table, ns: str, on: str, right: str
) -> None:
    """They would trust an engine of their own, act as others, approve changes, or remove the tags of policies."""
    manager, other = world.stranger(), world.stranger()
    places = ids(world, table, ns)
    world.grant(right, manager, on, places[on])
    world.grant("describe", manager, "warehouse", world.warehouse)
    for kind in list(places)[list(places).index(on) :]:
        for privilege in ON[kind]:
            for person in (manager, other):
                world.grant(privilege, person, kind, places[kind], by=manager, expect=403)
    # What they are for is not lost.
    world.grant("select", other, "table", table.uuid, by=manager)


def test_security_administrators_grant_and_revoke_them(world: World, table: Table, ns: str) -> None:
    security, other = world.stranger(), world.stranger()
    world.grant("security_admin", security, "project", world.project)
    for kind, id in ids(world, table, ns).items():
        for privilege in ON[kind]:
            world.grant(privilege, other, kind, id, by=security)
            world.revoke(privilege, other, kind, id, by=security)
