# SPDX-License-Identifier: Apache-2.0
"""Lists of access disclose nothing about grants that their reader may not read."""

from __future__ import annotations

import pytest

from tests.support.stack.access_lists import Row, all_rows, grant, in_table, row_of
from tests.support.stack.role_policies import make_role, put_in
from tests.support.stack.world import Person, Table, World

pytestmark = pytest.mark.threat("LG-DIS-01")


def _rows(world: World, manager: Person, table: Table) -> list[Row]:
    return all_rows(manager, in_table(world, table), "read_data")


def test_hidden_grants_change_neither_rows_nor_reasons(world: World, table: Table) -> None:
    manager, reader, other = world.stranger(), world.stranger(), world.stranger()
    namespace = world.namespace_id(table.namespace)
    grant(world, "manage_grants", "table", table.uuid, user=manager.id)
    grant(world, "select", "table", table.uuid, user=reader.id)
    grant(world, "select", "warehouse", world.warehouse, user=other.id)
    before = _rows(world, manager, table)
    assert row_of(before, user=other.id)["reason"] == [{"fact": "another grant"}]
    # The same rights by other facts that the manager may not read, and a second right of the reader.
    grant(world, "modify", "namespace", namespace, user=other.id)
    world.revoke("select", other, "warehouse", world.warehouse)
    grant(world, "modify", "warehouse", world.warehouse, user=reader.id)
    assert _rows(world, manager, table) == before
    assert row_of(_rows(world, world.admin, table), user=other.id)["reason"][0]["privilege"] == "modify"


def test_membership_that_the_reader_may_not_read_looks_like_another_grant(world: World, table: Table) -> None:
    manager, reader, role = world.stranger(), world.stranger(), make_role(world)
    grant(world, "manage_grants", "table", table.uuid, user=manager.id)
    grant(world, "select", "table", table.uuid, role=role)
    put_in(world, role, "user", reader.id)
    by_role = row_of(_rows(world, manager, table), user=reader.id)
    grant(world, "select", "warehouse", world.warehouse, user=reader.id)
    assert row_of(_rows(world, manager, table), user=reader.id) == by_role
    assert by_role["reason"] == [{"fact": "another grant"}]
