# SPDX-License-Identifier: Apache-2.0
"""Objects for checks of restricted tables."""

from __future__ import annotations

from gateway.access.nouns.refs import Table, TabularRef
from gateway.access.nouns.relations import Can
from gateway.access.tuples import Principal, PrincipalType
from gateway.obligations.data_policies import BoundPolicy
from tests.support.door import world
from tests.support.door.data_restrictions import People, fixture
from tests.support.door.world import DoorFixture

ON = TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID)
BOB = Principal(PrincipalType.USER, world.BOB_ID)


def house(judge: People, *bound: BoundPolicy) -> DoorFixture:
    """Return a house with these policies on the table, which is also found by its id. Alice manages the policies."""
    judge.holds.setdefault(world.ALICE.id, set()).update(
        (relation, each.policy.id) for each in bound for relation in (Can.READ, Can.UPDATE)
    )
    found = fixture(judge, *bound)
    found.resolver.rows[ON] = found.resolver.rows[world.TABLE]
    return found
