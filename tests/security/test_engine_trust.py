# SPDX-License-Identifier: Apache-2.0
"""No principal proves its own engine, and a user that an engine only names gets no keys of a restricted table.

The attacker holds the right to probe engines and controls an engine of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.stack.bound_policies import (
    DELEGATION,
    MASK,
    SIGN,
    bind,
    clean,
    engine,
    id_of,
    refused_with_remedy,
    restrictions,
    table,
)
from tests.support.stack.exchanging import acting
from tests.support.stack.world import Person, Table, World, send_until_decided

__all__ = ["clean", "engine", "table"]


@pytest.fixture(autouse=True)
def unprobed(world: World) -> Iterator[None]:
    """Remove all probes before and after the test."""
    world.sql("delete from engine_probes")
    yield
    world.sql("delete from engine_probes")


@pytest.mark.threat("LG-DEC-40")
def test_a_named_user_gets_neither_keys_nor_metadata_nor_signatures_of_a_restricted_table(
    world: World, table: Table, engine: Person
) -> None:
    bind(world, MASK, "table", id_of(table))
    assert restrictions(acting(world, engine, world.admin).get(table.path, headers=DELEGATION)) != {}
    named = acting(world, engine, world.admin, proven=False)
    for headers in ({}, DELEGATION):
        refused_with_remedy(named.get(table.path, headers=headers))
        refused_with_remedy(named.get(f"{table.path}/credentials", headers=headers))
    refused_with_remedy(named.post(f"{table.path}/sign", SIGN))
    assert world.commit(named, table.path, {"action": "set-properties", "updates": {"a": "b"}}).status_code == 403
    assert named.post(f"{table.path}/unregister", {}).status_code == 403


@pytest.mark.threat("LG-DEC-40")
def test_naming_an_exempt_user_or_a_user_that_is_no_subject_lifts_nothing(
    world: World, table: Table, engine: Person
) -> None:
    id = bind(world, MASK, "table", id_of(table))
    world.sql("update data_policies set applies_to = 'subjects'")
    named = acting(world, engine, world.admin, proven=False)
    refused_with_remedy(named.get(table.path, headers=DELEGATION))
    assert restrictions(acting(world, engine, world.admin).get(table.path, headers=DELEGATION)) == {}
    world.sql("update data_policies set applies_to = 'everyone'")
    world.sql("update warehouses set data_policy_revision = gen_random_uuid() where id = $1::uuid", world.warehouse)
    world.sql(
        "insert into grants (id, privilege, principal_type, principal_id, object_type, object_id, granted_by) "
        "values (gen_random_uuid(), 'exempt', 'user', $1, 'data_policy', $2, 'test')",
        world.admin.id,
        id,
    )
    refused_with_remedy(send_until_decided(lambda: named.get(table.path, headers=DELEGATION)))
    world.sql("delete from grants where privilege = 'exempt'")
