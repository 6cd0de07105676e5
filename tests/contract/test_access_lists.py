# SPDX-License-Identifier: Apache-2.0
"""The lists of access: the principals that may take an action, with the reason and the end of each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from tests.support.stack.access_lists import (
    WHAT_CAN,
    actions_on,
    all_rows,
    ask,
    grant,
    in_table,
    row_of,
    what_can,
)
from tests.support.stack.bound_policies import MASK, bind
from tests.support.stack.role_policies import contractors, make_role, put_in
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


def test_what_can_lists_the_highest_object_with_its_contents(world: World, table: Table) -> None:
    reader, namespace = world.stranger(), world.namespace_id(table.namespace)
    grant(world, "select", "namespace", namespace, user=reader.id)
    rows = what_can(reader)
    assert {"read_data", "get_metadata"} <= set(rows[-1]["contents"]["table"])
    assert [each["resource"]["type"] for each in rows] == ["project", "warehouse", "namespace"]
    (held,) = [each for each in rows[-1]["held"] if "get_metadata" in each["actions"]]
    assert (held["reason"][0]["privilege"], held["reason"][0]["granted-by"]) == ("select", world.admin.id)
    assert actions_on(rows, type="warehouse") >= {"get_metadata", "list_namespaces"}
    project = {"project": {"project-id": world.project}}
    assert what_can(world.admin, principal={"user": reader.id}, object=project) == rows


def test_what_can_about_others_needs_the_right_on_everything_below(world: World, table: Table) -> None:
    reader, manager, passer = world.stranger(), world.stranger(), world.stranger()
    namespace = world.namespace_id(table.namespace)
    grant(world, "select", "table", table.uuid, user=reader.id)
    grant(world, "manage_grants", "namespace", namespace, user=manager.id)
    for privilege in ("describe", "pass_grants"):
        grant(world, privilege, "namespace", namespace, user=passer.id)
    about = {"principal": {"user": reader.id}, "object": {"namespace": {"namespace-id": namespace}}}
    assert manager.post(WHAT_CAN, about).status_code == 200
    assert passer.post(WHAT_CAN, about).status_code == 403
    assert reader.post(WHAT_CAN, {**about, "principal": {"user": manager.id}}).status_code == 403
    assert world.stranger().post(WHAT_CAN, about).status_code == 404
    assert manager.post(WHAT_CAN, {"principal": {"user": reader.id}}).status_code == 403


def test_command_prints_who_can_and_what_can(world: World, table: Table) -> None:
    reader = world.stranger()
    grant(world, "select", "table", table.uuid, user=reader.id)
    base = world.ready.catalog_uri.removesuffix("/catalog")
    on = ("--warehouse", world.warehouse, "--table", table.uuid)
    login = ("--gateway", base, "--token", world.admin.token)
    listed = world.lakegate("access", "who-can", "read_data", *on, *login)
    assert listed.returncode == 0, listed.stderr
    reason = f"select of user {reader.id} on table {table.uuid} by {world.admin.id}"
    assert [f"user {reader.id}", "none", reason] in [each.split("\t") for each in listed.stdout.splitlines()]
    held = world.lakegate("access", "what-can", "--user", reader.id, "--action", "read_data", *on, *login)
    assert [each.split("\t") for each in held.stdout.splitlines()] == [
        [f"table {table.uuid}", "read_data", "none", reason]
    ]


def test_row_names_the_guardrail_that_would_deny(world: World, table: Table) -> None:
    free, held, role = world.stranger(), world.stranger(), make_role(world)
    put_in(world, role, "user", held.id)
    for person in (free, held):
        grant(world, "select", "table", table.uuid, user=person.id)
    with contractors(world, role):
        rows = all_rows(world.admin, in_table(world, table), "read_data")
    assert row_of(rows, user=held.id)["limits"]["denied"]
    assert "limits" not in row_of(rows, user=free.id)


def test_held_actions_name_the_guardrail_that_would_deny(world: World, table: Table) -> None:
    held, role = world.stranger(), make_role(world)
    put_in(world, role, "user", held.id)
    grant(world, "select", "table", table.uuid, user=held.id)
    about = {"principal": {"user": held.id}, "object": in_table(world, table)}
    (free,) = what_can(world.admin, **about)
    assert "limits" not in free
    with contractors(world, role):
        (row,) = what_can(world.admin, **about)
    denied = {action for each in row["limits"] if each["denied"] for action in each["actions"]}
    assert "read_data" in denied
    assert denied <= actions_on([row], type="table")
    assert {**row, "limits": []} == {**free, "limits": []}


def test_held_actions_name_data_policies_on_the_table_and_count_restricted_tables(world: World) -> None:
    reader, namespace = world.stranger(), world.namespace()
    open_, masked = world.table(namespace), world.table(namespace)
    place = world.namespace_id(namespace)
    grant(world, "select", "namespace", place, user=reader.id)
    grant(world, "modify", "table", masked.uuid, user=reader.id)
    about = {"principal": {"user": reader.id}, "object": {"namespace": {"namespace-id": place}}}
    assert not any("restricted-tables" in row or "limits" in row for row in what_can(world.admin, **about))
    policy = bind(world, MASK | {"columns": [{"name": "id"}]}, "table", masked.uuid)
    try:
        rows = what_can(world.admin, **about)
        (inside,) = [row for row in rows if row["resource"]["type"] == "table"]
        assert any(each["restricted"] and "read_data" in each["actions"] for each in inside["limits"])
        (whole,) = [row for row in rows if row["resource"]["type"] == "namespace"]
        assert whole["restricted-tables"] == {"count": 1}
        assert open_.uuid != masked.uuid
        world.sql("update data_policies set applies_to = 'subjects' where id = $1::uuid", policy)
        world.sql("update warehouses set data_policy_revision = gen_random_uuid() where id = $1::uuid", world.warehouse)
        assert not any("restricted-tables" in row or "limits" in row for row in what_can(world.admin, **about))
    finally:
        world.remove_policies()


def test_grant_just_made_is_in_the_next_answers(world: World, table: Table) -> None:
    for _ in range(3):
        reader = world.stranger()
        before = ask(world.admin, in_table(world, table), "read_data").json()
        grant(world, "select", "table", table.uuid, user=reader.id)
        after = ask(world.admin, in_table(world, table), "read_data").json()
        row_of(after["rows"], user=reader.id)
        assert datetime.fromisoformat(after["as-of"]) > datetime.fromisoformat(before["as-of"])
        (held,) = what_can(reader, object=in_table(world, table))
        assert "read_data" in actions_on([held], type="table")
        world.revoke("select", reader, "table", table.uuid)
        rows = all_rows(world.admin, in_table(world, table), "read_data")
        assert {"user": reader.id} not in [each["principal"] for each in rows]
