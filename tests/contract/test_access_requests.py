# SPDX-License-Identifier: Apache-2.0
"""Access requests: a user requests privileges, a grantor approves all or less, and the access ends by itself."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from tests.support.stack.access_requests import ask, asked, decide, listed, may_read, on_table, read
from tests.support.stack.world import Person, Table, World, error_of


def _describer(world: World, table: Table) -> Person:
    """Return a user that sees the table and may not read it."""
    person = world.stranger("requester")
    world.grant("describe", person, "table", table.uuid)
    return person


def test_approved_request_gives_access_that_expires_by_itself(world: World, table: Table) -> None:
    bob = _describer(world, table)
    made = ask(bob, on_table(world, table), duration_seconds=8)
    assert made.status_code == 201, made.text
    id = made.json()["id"]
    assert made.json()["status"] == "pending"
    assert made.json()["object"] == {
        "type": "table",
        "project-id": world.project,
        "warehouse-id": world.warehouse,
        "table-id": table.uuid,
    }
    assert made.json()["name"] == f"{table.namespace}.{table.name}"
    assert not may_read(bob, world, table)
    assert decide(world.admin, id, "approve", {"comment": "for the report"}).status_code == 204
    assert may_read(bob, world, table)
    found = read(bob, id)
    assert (found["status"], found["decided-by"], found["comment"]) == ("approved", world.admin.id, "for the report")
    ends = datetime.fromisoformat(found["ends-at"])
    assert ends - datetime.now(UTC) < timedelta(seconds=8)
    grants = world.admin.get(f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/grants").json()["grants"]
    (grant,) = [each for each in grants if each["principal"] == {"user": bob.id} and each["privilege"] == "select"]
    assert grant["reason"] == f"access request {id}: quarterly report"
    assert datetime.fromisoformat(grant["expires-at"]) == ends
    time.sleep(max(0.0, (ends - datetime.now(UTC)).total_seconds()) + 0.3)
    assert not may_read(bob, world, table)
    assert read(bob, id)["status"] == "ended"


def test_approver_can_give_fewer_privileges_for_a_shorter_time(world: World, table: Table) -> None:
    bob = _describer(world, table)
    id = asked(bob, on_table(world, table), "select", "modify", duration_seconds=7200)
    wider = {"privileges": ["select", "ownership"]}, {"duration-seconds": 7201}
    for body in wider:
        refused = decide(world.admin, id, "approve", body)
        assert (refused.status_code, error_of(refused)["type"]) == (400, "AccessRequestInvalid")
    narrow = {"privileges": ["select"], "duration-seconds": 3600}
    assert decide(world.admin, id, "approve", narrow).status_code == 204
    found = read(bob, id)
    assert (found["privileges"], found["granted"]) == (["modify", "select"], ["select"])
    assert datetime.fromisoformat(found["ends-at"]) - datetime.now(UTC) < timedelta(seconds=3601)
    assert bob.get(f"{table.path}/credentials").status_code == 200


def test_requests_are_listed_for_requesters_and_approvers(world: World, table: Table) -> None:
    bob, other = _describer(world, table), _describer(world, table)
    owner = world.stranger("owner")
    world.grant("manage_grants", owner, "table", table.uuid)
    id = asked(bob, on_table(world, table))
    assert listed(bob) == listed(bob, mine="true") == [id]
    assert listed(bob, mine="false") == []
    assert listed(owner) == listed(owner, mine="false", status="pending") == [id]
    assert listed(owner, mine="true") == listed(owner, status="approved") == []
    assert listed(other) == []
