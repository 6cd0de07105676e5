# SPDX-License-Identifier: Apache-2.0
"""The Python reader and data policies on a running gateway: filters, masks, time travel and renamed columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyiceberg.exceptions import ForbiddenError

from lakegate.reader import LoadFailed, Reader, RestrictedTable
from tests.support.engines.lake import catalog_of
from tests.support.stack.columns import WIDE, evolve, wide
from tests.support.stack.world import Table, World, unique

ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": "Ada", "card": "4111-1111", "address": {"street": "First"}},
    {"id": 2, "name": "Bo", "card": "4222-2222", "address": None},
    {"id": 3, "name": None, "card": "4333-3333", "address": {"street": "Third"}},
]
MASK = {"kind": "mask", "action": "show-last-4", "columns": [{"name": "card"}]}
#: Also excludes the row with null: a comparison with null is false.
NOT_ADA = {
    "kind": "row-filter",
    "test": {"type": "compare", "operator": "not-eq", "column": {"name": "name"}, "value": "Ada"},
}


@pytest.fixture
def service(world: World) -> Iterator[Reader]:
    """Yield the reader of a service that holds `delegate` and `enforcer`."""
    for person in (world.carol, world.etl):
        world.strip(person)
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    assert world.ready.warehouse is not None
    yield Reader(world.base, world.ready.warehouse, world.etl.token)
    world.sql("update warehouses set data_policy_revision = null where id = $1", world.warehouse)
    for person in (world.carol, world.etl):
        world.strip(person)


@pytest.fixture
def table(world: World, ns: str, service: Reader) -> Table:
    """Return a table of three rows with a mask and a row filter, that carol may select."""
    table = wide(world, ns)
    opened = catalog_of(world, world.admin).load_table((ns, table.name))
    opened.append(pa.Table.from_pylist(ROWS, schema=opened.schema().as_arrow()))
    world.grant("select", world.carol, "table", table.uuid)
    for definition in (MASK, NOT_ADA):
        bind(world, table, definition)
    return table


def bind(world: World, table: Table, definition: object) -> None:
    """Create a data policy and bind it to the table."""
    policy = uuid4()
    world.sql(
        "insert into data_policies (id, project_id, name, name_key, definition) values ($1, $2, $3, $3, $4::jsonb)",
        policy,
        world.project,
        unique("policy"),
        json.dumps(definition),
    )
    world.sql(
        "insert into data_policy_bindings (policy_id, object_type, object_id, warehouse_id, recorded_fields, bound_by) "
        "values ($1, 'table', $2, $3, '{}', 'x')",
        policy,
        table.uuid,
        world.warehouse,
    )
    world.sql("update warehouses set data_policy_revision = gen_random_uuid() where id = $1", world.warehouse)


def opened(world: World, table: Table, service: Reader) -> RestrictedTable:
    return service.as_user(world.carol.token).table((table.namespace, table.name))


def test_rows_and_columns_are_restricted_also_for_the_owner(world: World, table: Table, service: Reader) -> None:
    expected = [{"id": 2, "name": "Bo", "card": "nnnn-2222", "address": None}]
    assert opened(world, table, service).to_arrow().to_pylist() == expected
    owner = service.as_user(world.admin.token).table((table.namespace, table.name))
    assert owner.to_arrow().to_pylist() == expected


def test_untrusted_clients_get_no_restricted_table(world: World, table: Table, service: Reader) -> None:
    for person in (world.carol, world.admin):
        with pytest.raises(ForbiddenError):
            catalog_of(world, person).load_table((table.namespace, table.name))
    world.revoke("enforcer", world.etl, "warehouse", world.warehouse)
    with pytest.raises(LoadFailed) as refused:
        opened(world, table, service)
    assert refused.value.status == 403


def test_policy_follows_a_renamed_column_and_old_snapshots(world: World, table: Table, service: Reader) -> None:
    before = opened(world, table, service)
    old = before.snapshot_ids[0]
    fields = [dict(each) for each in WIDE["fields"]]
    fields[2]["name"], fields[1]["name"] = "number", "person"
    # The administrator is restricted too, and cannot change the schema while the policies apply.
    world.sql("update warehouses set data_policy_revision = null where id = $1", world.warehouse)
    evolve(world, table, fields, 5)
    world.sql("update warehouses set data_policy_revision = gen_random_uuid() where id = $1", world.warehouse)
    after = opened(world, table, service)
    assert after.to_arrow(["id", "number"]).to_pylist() == [{"id": 2, "number": "nnnn-2222"}]
    assert after.to_arrow(["id", "card"], snapshot_id=old).to_pylist() == [{"id": 2, "card": "nnnn-2222"}]
