# SPDX-License-Identifier: Apache-2.0
"""Questions for the check API."""

from __future__ import annotations

from tests.support.stack.role_policies import make_role
from tests.support.stack.world import World

BATCH = "/management/v1/action/batch-check"


def known_role(world: World) -> str:
    """Create a role whose membership of its project is also in OpenFGA."""
    role = make_role(world)
    world.sql(
        "insert into outbox (subject_type, subject_id, relation, object_type, object_id, takes_away) "
        "values ('project', $1, 'project', 'role', $2, false)",
        world.project,
        role,
    )
    world.delivered()
    return role
