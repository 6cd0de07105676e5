# SPDX-License-Identifier: Apache-2.0
"""Break-glass: rights for minutes, with a reason, an audit mark and a review by another principal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.support.stack.access_requests import may_read
from tests.support.stack.break_glass import audited, change, expire, holder, listed, on_table, start, started
from tests.support.stack.world import Table, World, error_of


def test_an_activation_gives_expiring_grants_and_its_review_is_closed_by_another(world: World, table: Table) -> None:
    oncall = holder(world)
    assert oncall.get(table.path).status_code == 404
    made = start(oncall, on_table(world, table), reason="pipeline down", minutes=20)
    assert made.status_code == 201, made.text
    id, found = made.json()["id"], made.json()
    assert (found["status"], found["privileges"], found["minutes"]) == ("active", ["select"], 20)
    ends = datetime.fromisoformat(found["ends-at"])
    assert timedelta(minutes=19) < ends - datetime.now(UTC) <= timedelta(minutes=20)
    assert may_read(oncall, world, table)
    grants = world.admin.get(f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/grants").json()["grants"]
    (grant,) = [each for each in grants if each["principal"] == {"user": oncall.id}]
    assert grant["reason"] == f"break-glass {id}: pipeline down"
    assert datetime.fromisoformat(grant["expires-at"]) == ends
    assert change(oncall, id, "end").status_code == 204
    assert change(oncall, id, "end").status_code == 204, "ending twice has no effect"
    assert not may_read(oncall, world, table)
    assert listed(world.admin, "ended")[id]["ended-by"] == oncall.id
    assert change(world.admin, id, "review", {"finding": "justified"}).status_code == 204
    reviewed = listed(oncall, "reviewed")[id]
    assert (reviewed["reviewed-by"], reviewed["finding"]) == (world.admin.id, "justified")
    again = change(world.admin, id, "review")
    assert (again.status_code, error_of(again)["type"]) == (409, "BreakGlassNotOpen")


def test_a_second_person_confirms_before_any_grant_is_made(world: World, table: Table) -> None:
    oncall, second = holder(world), holder(world)
    made = start(oncall, on_table(world, table), second_person=True)
    id = made.json()["id"]
    assert made.json()["status"] == "pending"
    assert not may_read(oncall, world, table)
    assert id in listed(second, "pending")
    assert change(second, id, "confirm").status_code == 204
    assert may_read(oncall, world, table)
    found = listed(oncall, "active")[id]
    assert found["confirmed-by"] == second.id
    again = change(second, id, "confirm")
    assert (again.status_code, error_of(again)["type"]) == (409, "BreakGlassNotOpen")
    assert change(second, id, "end").status_code == 204
    assert not may_read(oncall, world, table)


def test_a_pending_activation_can_be_withdrawn_and_needs_no_review(world: World, table: Table) -> None:
    oncall = holder(world)
    id = started(oncall, on_table(world, table), second_person=True)
    assert change(oncall, id, "end").status_code == 204
    assert listed(oncall)[id]["status"] == "lapsed"
    assert change(world.admin, id, "review").status_code == 409


def test_an_expired_activation_has_an_open_review_for_auditors(world: World, table: Table, ns: str) -> None:
    oncall = holder(world, "namespace", world.namespace_id(ns))
    watching = world.stranger("auditor")
    world.grant("auditor", watching, "warehouse", world.warehouse)
    id = started(oncall, on_table(world, table))
    assert change(watching, id, "review").status_code == 409, "it is still active"
    expire(world, id)
    assert listed(watching, "ended")[id]["principal"] == {"user": oncall.id}
    assert change(watching, id, "review", {"finding": "one query, as said"}).status_code == 204
    world.strip(watching)


def test_deleted_users_have_no_open_activation(world: World, table: Table) -> None:
    oncall, other = holder(world), holder(world)
    active = started(oncall, on_table(world, table))
    pending = started(other, on_table(world, table), second_person=True)
    for each in (oncall, other):
        assert world.admin.delete(f"/management/v1/user/{each.id}").status_code == 204
    found = listed(world.admin)
    assert (found[active]["status"], found[active]["ended-by"]) == ("ended", world.admin.id)
    assert found[pending]["status"] == "lapsed"
    assert change(world.admin, active, "review").status_code == 204


def test_one_open_activation_for_each_user_and_object(world: World, table: Table) -> None:
    oncall = holder(world)
    id = started(oncall, on_table(world, table))
    again = start(oncall, on_table(world, table), "modify")
    assert (again.status_code, error_of(again)["type"]) == (409, "BreakGlassAlreadyOpen")
    assert id in error_of(again)["message"]
    warehouse = {"type": "warehouse", "warehouse-id": world.warehouse}
    other = started(oncall, warehouse, "describe")
    assert oncall.get(table.path).status_code == 200
    for each in (id, other):
        assert change(oncall, each, "end").status_code == 204


def test_reason_minutes_and_privileges_are_limited(world: World, table: Table) -> None:
    oncall, on = holder(world), on_table(world, table)
    for wrong in ({"minutes": 14}, {"minutes": 61}, {"reason": ""}):
        assert start(oncall, on, **wrong).status_code == 400, wrong
    assert start(oncall, on, "ownership").status_code == 400
    assert start(oncall, {"type": "project", "project-id": world.project}).status_code == 400
    assert not [each for each in listed(oncall).values() if each["principal"] == {"user": oncall.id}]


def test_audit_records_in_the_scope_name_the_activation(world: World, table: Table, ns: str) -> None:
    oncall = holder(world)
    world.grant("describe", oncall, "project", world.project)
    beside = world.table(world.namespace())
    id = started(oncall, {"type": "namespace", "warehouse-id": world.warehouse, "namespace": [ns]}, "modify")
    inside = oncall.get(table.path)
    outside = oncall.get(beside.path)
    assert change(oncall, id, "end").status_code == 204
    after = oncall.get(table.path)
    assert (inside.status_code, outside.status_code, after.status_code) == (200, 200, 200)
    assert [audited(world, answer) for answer in (inside, outside, after)] == [
        ("allowed", id),
        ("allowed", None),
        ("allowed", None),
    ]
    world.strip(oncall)
