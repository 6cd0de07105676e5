# SPDX-License-Identifier: Apache-2.0
"""The lists of access: the principals that may take an action, with the reason and the end of each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from tests.support.stack.access_lists import all_rows, ask, grant, in_table, row_of
from tests.support.stack.role_policies import make_role
from tests.support.stack.world import Table, World


def test_row_has_the_grant_with_its_grantor_reason_and_end(world: World, table: Table) -> None:
    reader, until = world.stranger(), datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    path = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/grants"
    write = {
        "privilege": "select",
        "principal": {"user": reader.id},
        "reason": "audit",
        "expires-at": until.isoformat(),
    }
    assert world.admin.post(path, {"writes": [write]}).status_code == 204
    answer = ask(world.admin, in_table(world, table), "read_data")
    assert answer.status_code == 200, answer.text
    row = row_of(answer.json()["rows"], user=reader.id)
    (fact,) = row["reason"]
    assert (fact["fact"], fact["privilege"], fact["granted-by"], fact["reason"]) == (
        "grant",
        "select",
        world.admin.id,
        "audit",
    )
    assert row["resource"]["table-id"] == table.uuid
    assert datetime.fromisoformat(row["end"]) == until
    assert answer.json()["staleness-seconds"] == 0
    assert answer.json()["token-groups-known"] is False


def test_role_is_a_row_that_expands_to_its_members(world: World, table: Table) -> None:
    member, role = world.stranger(), make_role(world)
    grant(world, "assignee", "role", role, user=member.id)
    grant(world, "select", "table", table.uuid, role=role)
    rows = all_rows(world.admin, in_table(world, table), "read_data")
    assert row_of(rows, role=role)["expandable"] is True
    assert {"user": member.id} not in [each["principal"] for each in rows]
    members = all_rows(world.admin, in_table(world, table), "read_data", expand=role)
    assert [each["principal"] for each in members] == [{"user": member.id}]
    assert [each["fact"] for each in members[0]["reason"]] == ["membership", "grant"]


def test_absent_and_invisible_objects_answer_alike_and_the_right_is_demanded(world: World, table: Table) -> None:
    outsider, reader = world.stranger(), world.stranger()
    world.grant("select", reader, "table", table.uuid)
    absent = {"table": {"warehouse-id": world.warehouse, "table-id": str(uuid4())}}
    assert ask(outsider, in_table(world, table), "read_data").status_code == 404
    assert ask(outsider, absent, "read_data").status_code == 404
    assert ask(reader, in_table(world, table), "read_data").status_code == 403


def test_expanding_needs_the_right_to_read_the_members(world: World, table: Table) -> None:
    manager, role = world.stranger(), make_role(world)
    world.grant("manage_grants", manager, "table", table.uuid)
    grant(world, "select", "table", table.uuid, role=role)
    rows = all_rows(manager, in_table(world, table), "read_data")
    assert "expandable" not in row_of(rows, role=role)
    assert ask(manager, in_table(world, table), "read_data", expand=role).status_code in (403, 404)
