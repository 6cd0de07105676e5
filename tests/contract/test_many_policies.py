# SPDX-License-Identifier: Apache-2.0
"""A table with a thousand data policies: the answers are the strictest, and the questions to OpenFGA stay bounded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.support.stack.columns import BATCH, wide
from tests.support.stack.data_policies import change, make, target
from tests.support.stack.exchanging import acting
from tests.support.stack.world import Person, Table, World, send_until_decided

pytestmark = pytest.mark.generated

COUNT = 1000
#: Each policy masks `name` in one of these ways. Every second one applies to everyone: the first and third way.
ACTIONS = ("show-first-4", "show-last-4", "mask-alphanum", "sha-256-global")
#: The last policy is the only one that masks `card`, and the one before it the only filter.
LAST = {"kind": "mask", "action": "mask-to-fixed-value", "columns": [{"name": "card"}]}
FILTER = {"kind": "row-filter", "test": {"type": "in", "column": {"name": "id"}, "values": [1]}}


@pytest.fixture
def engine(world: World) -> Iterator[Person]:
    """Return an engine with `delegate`, `enforcer` and `inspector`."""
    for privilege in ("delegate", "enforcer", "inspector"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    yield world.etl
    world.strip(world.etl)


@pytest.fixture
def policies(world: World, ns: str) -> Iterator[tuple[Table, list[str]]]:
    """Return a table and the ids of its policies. Half of them apply to subjects only, and no user is one."""
    table = wide(world, ns)
    ids = [str(uuid4()) for _ in range(COUNT - 1)]
    masks = [{"kind": "mask", "action": ACTIONS[n % 4], "columns": [{"name": "name"}]} for n in range(COUNT - 2)]
    definitions = [*masks, FILTER]
    applies = ["everyone" if n % 2 == 0 else "subjects" for n in range(COUNT - 1)]
    world.sql(
        """
        with policy as (
            insert into data_policies (id, project_id, name, name_key, definition, applies_to)
            select p.id::uuid, w.project_id, p.id, p.id, p.definition::jsonb, p.applies
            from warehouses w, unnest($1::text[], $2::text[], $3::text[]) p(id, definition, applies)
            where w.id = $4::uuid
            returning id),
        binding as (
            insert into data_policy_bindings (policy_id, object_type, object_id, warehouse_id, bound_by)
            select id, 'table', $5::uuid, $4::uuid, 'test' from policy)
        update warehouses set data_policy_revision = gen_random_uuid() where id = $4::uuid
        """,
        ids,
        [json.dumps(each) for each in definitions],
        applies,
        world.warehouse,
        table.uuid,
    )
    last = make(world, LAST)
    assert change(world, last, add=[target(world, table)]).status_code == 204
    ids.append(last["id"])
    yield table, ids
    world.sql("delete from data_policies where id::text = any($1::text[])", ids)
    world.sql("update warehouses set data_policy_revision = gen_random_uuid() where id = $1::uuid", world.warehouse)


def test_a_thousand_policies_of_a_table_restrict_to_the_strictest(
    world: World, engine: Person, policies: tuple[Table, list[str]]
) -> None:
    """Also if questions to OpenFGA need many batches: a policy of the last batch counts like the first."""
    table, ids = policies
    user = world.stranger()
    world.grant("select", user, "table", table.uuid)
    about = {"warehouse-id": world.warehouse, "table-id": table.uuid}
    operation = {"table": {**about, "action": {"action": "read_columns"}, "restrictions": "trino"}}
    body = {"delegated": True, "checks": [{"identity": {"user": user.id}, "operation": operation}]}
    answer = send_until_decided(lambda: engine.post(BATCH, body))
    assert answer.status_code == 200, answer.text
    (result,) = answer.json()["results"]
    assert result["allowed"]
    assert {each["column"] for each in result["restrictions"]["column-masks"]} == {"name", "card"}
    assert "1" in result["restrictions"]["row-filter"]

    loaded = send_until_decided(lambda: acting(world, engine, user).get(table.path))
    assert loaded.status_code == 200, loaded.text
    found = loaded.json()["read-restrictions"]
    actions = {each["field-id"]: each["action"] for each in found["required-column-projections"]}
    assert actions == {2: "mask-alphanum", 3: "mask-to-fixed-value"}
    assert found["required-row-filter"] == {"type": "in", "child": {"type": "reference", "id": 1}, "values": [1]}

    world.sql("update data_policies set applies_to = 'subjects' where id::text = any($1::text[])", ids[:-1])
    world.sql("update warehouses set data_policy_revision = gen_random_uuid() where id = $1::uuid", world.warehouse)
    loaded = send_until_decided(lambda: acting(world, engine, user).get(table.path))
    found = loaded.json()["read-restrictions"]
    assert found == {"required-column-projections": [{"field-id": 3, "action": "mask-to-fixed-value"}]}


def test_an_exemption_from_one_of_a_thousand_policies_leaves_the_others(
    world: World, engine: Person, policies: tuple[Table, list[str]]
) -> None:
    table, ids = policies
    user = world.stranger()
    world.grant("select", user, "table", table.uuid)
    world.grant("exempt", user, "data-policy", ids[-1])
    loaded = send_until_decided(lambda: acting(world, engine, user).get(table.path))
    assert loaded.status_code == 200, loaded.text
    found = loaded.json()["read-restrictions"]
    assert [each["field-id"] for each in found["required-column-projections"]] == [2]
