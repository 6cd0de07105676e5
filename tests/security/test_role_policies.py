# SPDX-License-Identifier: Apache-2.0
"""A policy about a role applies to the role's members in HTTP requests, not only in tests of Rego (LG-DEC-24)."""

from __future__ import annotations

import pytest

from tests.support.stack.role_policies import contractors, make_role, outcome, put_in
from tests.support.stack.world import World


@pytest.mark.threat("LG-DEC-24")
@pytest.mark.parametrize("through_another_role", [False, True], ids=["directly", "through another role"])
def test_role_policy_applies_to_its_members(world: World, ns: str, through_another_role: bool) -> None:
    table = world.table(ns)
    role = make_role(world)
    member_of = make_role(world) if through_another_role else role
    if through_another_role:
        put_in(world, role, "role", member_of)
    world.grant("select", world.bob, "namespace", world.namespace_id(ns))
    assert outcome(world.bob, table.path) == (200, False)
    with contractors(world, role):
        assert outcome(world.bob, table.path) == (200, False)
    put_in(world, member_of, "user", world.bob.id)
    try:
        with contractors(world, role):
            assert outcome(world.bob, table.path) == (403, True)
            assert outcome(world.alice, table.path) == (200, False)
    finally:
        assert world.admin.delete(f"/management/v1/role/{member_of}").status_code == 204
