# SPDX-License-Identifier: Apache-2.0
"""Requests for several objects: they are made, decided and ended together, or one by one."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack.access_requests import (
    REQUESTS,
    ask_together,
    asked,
    asked_together,
    decide,
    holder,
    listed,
    may_read,
    on_table,
    read,
)
from tests.support.stack.world import Person, Table, World, error_of


@pytest.fixture
def two(world: World) -> tuple[Table, Table]:
    """Create tables in two namespaces."""
    return world.table(world.namespace()), world.table(world.namespace())


def _readable(world: World, person: Person, tables: tuple[Table, Table]) -> list[bool]:
    return [may_read(person, world, table) for table in tables]


def _statuses(person: Person, id: str) -> list[str]:
    return [each["status"] for each in read(person, id)["items"]]


def _error(person: Person, id: str, action: str, body: dict[str, Any] | None = None) -> tuple[int, str]:
    refused = decide(person, id, action, body)
    return refused.status_code, error_of(refused)["type"]


def test_objects_are_requested_approved_and_ended_together(world: World, two: tuple[Table, Table]) -> None:
    bob, owner = holder(world, "describe", *two), holder(world, "manage_grants", *two)
    bundle, ids = asked_together(bob, world, *two)
    assert listed(owner, mine="false") == listed(bob) == ids
    for person in (bob, owner):
        found = read(person, bundle)
        assert (found["id"], found["bundle"]) == (ids[0], bundle)
        assert [each["object"]["table-id"] for each in found["items"]] == [each.uuid for each in two]
        assert [each["opens"] for each in found["items"]] == [[], []]
        assert read(person, ids[1])["items"] == found["items"]
    assert decide(owner, bundle, "approve", {"comment": "for the report"}).status_code == 204
    assert decide(owner, bundle, "approve").status_code == 204, "repeating the own decision has no effect"
    assert _readable(world, bob, two) == [True, True]
    assert _statuses(bob, bundle) == ["approved", "approved"]
    assert {each["granted"][0] for each in read(bob, bundle)["items"]} == {"select"}
    assert decide(bob, bundle, "end").status_code == 204
    assert _readable(world, bob, two) == [False, False]
    assert _statuses(bob, bundle) == ["ended", "ended"]


def test_an_object_in_another_warehouse_is_requested_together(world: World, soft: World, table: Table) -> None:
    other = soft.table(soft.namespace())
    bob = holder(world, "describe", table)
    soft.grant("describe", bob, "table", other.uuid)
    made = ask_together(bob, (on_table(world, table), ["select"]), (on_table(soft, other), ["select", "modify"]))
    assert made.status_code == 201, made.text
    assert decide(world.admin, made.json()["bundle"], "approve").status_code == 204
    assert may_read(bob, world, table) and may_read(bob, soft, other)
    assert [each["granted"] for each in read(bob, made.json()["bundle"])["items"]] == [["select"], ["modify", "select"]]
    assert decide(world.admin, made.json()["bundle"], "end").status_code == 204
    assert not may_read(bob, world, table) and not may_read(bob, soft, other)


def test_who_may_decide_about_one_object_grants_nothing_on_both(world: World, two: tuple[Table, Table]) -> None:
    bob, half = holder(world, "describe", *two), holder(world, "manage_grants", two[1])
    bundle, (first, second) = asked_together(bob, world, *two)
    assert [each["id"] for each in read(half, bundle)["items"]] == [second]
    for action in ("approve", "deny"):
        assert _error(half, bundle, action) == (403, "BundleForbidden")
    assert _error(half, bundle, "approve", {"requests": [first, second]}) == (404, "AccessRequestNotFound")
    assert _statuses(bob, bundle) == ["pending", "pending"]
    assert _readable(world, bob, two) == [False, False]
    assert decide(half, second, "approve").status_code == 204
    assert _readable(world, bob, two) == [False, True]
    assert decide(world.admin, bundle, "deny", {"reason": "use the copy"}).status_code == 204
    assert _statuses(bob, bundle) == ["denied", "approved"]
    assert _error(half, bundle, "end") == (403, "BundleForbidden")
    assert decide(half, second, "end").status_code == 204


def test_an_approver_selects_some_requests_and_fewer_privileges(world: World, two: tuple[Table, Table]) -> None:
    bob = holder(world, "describe", *two)
    made = ask_together(bob, *((on_table(world, table), ["select", "modify"]) for table in two)).json()
    first, second = (each["id"] for each in made["items"])
    owner = holder(world, "manage_grants", two[0])
    # `pass_grants` grants what the holder has: `select` and not `modify`.
    for privilege in ("select", "pass_grants"):
        world.grant(privilege, owner, "table", two[1].uuid)
    assert decide(owner, made["bundle"], "approve").status_code == 403
    assert _statuses(bob, made["bundle"]) == ["pending", "pending"]
    narrow = {"privileges": ["select"], "requests": [second]}
    assert decide(owner, made["bundle"], "approve", narrow).status_code == 204
    assert _statuses(bob, made["bundle"]) == ["pending", "approved"]
    assert decide(owner, made["bundle"], "approve").status_code == 204, "the whole is what is still pending"
    assert [each["granted"] for each in read(bob, first)["items"]] == [["modify", "select"], ["select"]]
    assert _error(owner, made["bundle"], "approve", {"requests": [str(uuid4())]}) == (404, "AccessRequestNotFound")


def test_requests_are_denied_withdrawn_and_announced_together(world: World, two: tuple[Table, Table]) -> None:
    bob = holder(world, "describe", *two)
    denied, _ = asked_together(bob, world, *two)
    for _ in range(2):
        assert decide(world.admin, denied, "deny", {"reason": "use the copy"}).status_code == 204
    assert _statuses(bob, denied) == ["denied", "denied"]
    withdrawn, ids = asked_together(bob, world, *two)
    assert _error(bob, withdrawn, "remind") == (409, "AccessReminderTooEarly")
    world.sql(
        "update access_requests set created_at = now() - interval '2 days' where bundle = $1::text::uuid", withdrawn
    )
    assert decide(bob, withdrawn, "remind").status_code == 204
    assert all("reminded-at" in read(bob, id) for id in ids)
    for _ in range(2):
        assert decide(bob, withdrawn, "withdraw").status_code == 204
    assert _statuses(bob, withdrawn) == ["withdrawn", "withdrawn"]
    for id, action in ((denied, "approve"), (denied, "withdraw"), (denied, "remind"), (withdrawn, "deny")):
        person = bob if action in ("withdraw", "remind") else world.admin
        assert _error(person, id, action) == (409, "AccessRequestNotOpen"), action


def test_requests_of_another_form_are_refused(world: World, two: tuple[Table, Table]) -> None:
    bob = holder(world, "describe", *two)
    on = on_table(world, two[0])
    by_name = {"type": "table", "warehouse-id": world.warehouse, "namespace": [two[0].namespace], "name": two[0].name}
    item = {"object": on, "privileges": ["select"]}
    bodies: list[dict[str, Any]] = [
        {"items": []},
        {"items": [item] * 11},
        {"items": [item, item]},
        {"items": [item, {"object": by_name, "privileges": ["modify"]}]},
        {"items": [item], "object": on},
        {"items": [item], "privileges": ["select"]},
        {"items": [{**item, "reason": "a report"}]},
        {"object": on},
        {},
    ]
    for body in bodies:
        refused = bob.post(REQUESTS, {"reason": "a report", **body})
        assert refused.status_code == 400, (body, refused.text)
    assert listed(bob) == []


def test_one_refused_object_refuses_the_whole_request(world: World, two: tuple[Table, Table]) -> None:
    bob = holder(world, "describe", *two)
    asked(bob, on_table(world, two[1]))
    again = ask_together(bob, *((on_table(world, table), ["select"]) for table in two))
    assert (again.status_code, error_of(again)["type"]) == (409, "AccessRequestAlreadyOpen")
    assert len(listed(bob)) == 1


def test_command_requests_several_objects_and_approves_one(world: World, two: tuple[Table, Table]) -> None:
    bob = holder(world, "describe", *two)

    def run(person: Person, *words: str) -> str:
        done = world.lakegate("access", *words, "--gateway", world.base, "--token", person.token)
        assert done.returncode == 0, done.stderr
        return done.stdout

    on = [word for table in two for word in ("--table", f"{table.namespace}.{table.name}")]
    bundle = run(bob, "request", "select", "--warehouse", world.warehouse, *on, "--reason", "a report").strip()
    lines = [each.split("\t") for each in run(bob, "requests", "--mine").splitlines()]
    assert [(each[5], each[-1]) for each in lines] == [(f"{table.namespace}.{table.name}", bundle) for table in two]
    run(world.admin, "approve", bundle, "--only", lines[1][0])
    assert _readable(world, bob, two) == [False, True]
    run(world.admin, "approve", bundle)
    run(bob, "end", bundle)
    assert _statuses(bob, bundle) == ["ended", "ended"]
