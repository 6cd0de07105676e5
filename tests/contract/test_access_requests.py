# SPDX-License-Identifier: Apache-2.0
"""Access requests: a user requests privileges, a grantor approves all or less, and the access ends by itself."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.stack.access_requests import ask, asked, decide, listed, may_read, on_table, read
from tests.support.stack.explained import explain, of_table
from tests.support.stack.role_policies import make_role
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


def test_a_privilege_that_no_longer_exists_is_named_and_not_approved(world: World, table: Table) -> None:
    bob = _describer(world, table)
    id = asked(bob, on_table(world, table))
    world.sql("update access_requests set privileges = '{select,former}' where id = $1::text::uuid", id)
    for body in ({}, {"privileges": ["former"]}):
        refused = decide(world.admin, id, "approve", body)
        assert (refused.status_code, error_of(refused)["type"]) == (400, "AccessRequestInvalid")
        assert error_of(refused)["message"].startswith("former can no longer be granted on this table. ")
    assert decide(world.admin, id, "approve", {"privileges": ["select"]}).status_code == 204


def test_a_repair_of_several_grants_on_an_object_is_one_request(world: World, table: Table) -> None:
    bob = _describer(world, table)
    repairs = explain(bob, of_table(world, table.uuid, "move"))["relationships"]["repairs"]
    repair = next(each for each in repairs if len(each["grants"]) == 2)
    assert {each["object"]["id"] for each in repair["grants"]} == {table.uuid}
    privileges = sorted(each["privilege"] for each in repair["grants"])
    assert privileges == ["manage_grants", "modify"]
    id = asked(bob, on_table(world, table), *privileges)
    assert decide(world.admin, id, "approve").status_code == 204
    assert read(bob, id)["granted"] == privileges
    assert explain(bob, of_table(world, table.uuid, "move"))["decision"] == "allowed"
    assert decide(bob, id, "end").status_code == 204
    assert explain(bob, of_table(world, table.uuid, "move"))["decision"] == "denied"


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


@pytest.mark.parametrize("above", ["namespace", "outer namespace", "warehouse", "project", "role"])
def test_requests_are_listed_for_approvers_with_a_right_on_a_container(world: World, above: str) -> None:
    outer = inner = world.namespace()
    if above == "outer namespace":
        inner = f"{outer}%1Finner"
        made = world.admin.post(f"{world.root}/namespaces", {"namespace": [outer, "inner"]})
        assert made.status_code == 200, made.text
    table = world.table(inner)
    bob, owner = _describer(world, table), world.stranger("owner")
    if above == "role":
        role = make_role(world)
        entry = {"privilege": "manage_grants", "principal": {"role": role}}
        path = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/grants"
        assert world.admin.post(path, {"writes": [entry]}).status_code == 204
        world.grant("assignee", owner, "role", role)
    elif above == "project":
        world.grant("security_admin", owner, "project", world.project)
    else:
        on = world.warehouse if above == "warehouse" else world.namespace_id(outer)
        world.grant("manage_grants", owner, above.removeprefix("outer "), on)
    id = asked(bob, on_table(world, table))
    assert id in listed(owner, mine="false")
    assert decide(owner, id, "approve").status_code == 204
    world.strip(owner)


def test_deleted_users_have_no_open_requests(world: World, table: Table) -> None:
    bob = _describer(world, table)
    pending, approved = asked(bob, on_table(world, table)), asked(bob, on_table(world, table), "modify")
    assert decide(world.admin, approved, "approve").status_code == 204
    assert world.admin.delete(f"/management/v1/user/{bob.id}").status_code == 204
    found = read(world.admin, pending)
    assert (found["status"], found["ended-by"]) == ("withdrawn", world.admin.id)
    assert found["comment"] == "The user was deleted."
    assert read(world.admin, approved)["status"] == "ended"
    refused = decide(world.admin, pending, "approve")
    assert (refused.status_code, error_of(refused)["type"]) == (409, "AccessRequestNotOpen")
    assert listed(world.admin, status="pending", mine="false").count(pending) == 0


def test_denied_and_withdrawn_requests_show_who_ended_them_and_why(world: World, table: Table) -> None:
    bob = _describer(world, table)
    denied, withdrawn = asked(bob, on_table(world, table)), asked(bob, on_table(world, table), "modify")
    for _ in range(2):
        assert decide(world.admin, denied, "deny", {"reason": "use the copy"}).status_code == 204
        assert decide(bob, withdrawn, "withdraw").status_code == 204
    found = read(bob, denied)
    assert (found["status"], found["decided-by"], found["comment"]) == ("denied", world.admin.id, "use the copy")
    found = read(world.admin, withdrawn)
    assert (found["status"], found["ended-by"]) == ("withdrawn", bob.id)
    for id, action in ((denied, "approve"), (denied, "withdraw"), (withdrawn, "deny"), (denied, "end")):
        refused = decide(bob if action == "withdraw" else world.admin, id, action)
        assert (refused.status_code, error_of(refused)["type"]) == (409, "AccessRequestNotOpen"), action


def test_end_of_an_access_keeps_other_grants_of_the_privilege(world: World, table: Table) -> None:
    bob, owner = _describer(world, table), world.stranger("owner")
    world.grant("manage_grants", owner, "table", table.uuid)
    id = asked(bob, on_table(world, table))
    for _ in range(2):
        assert decide(owner, id, "approve").status_code == 204, "repeating the own decision has no effect"
    world.sql("update grants set granted_by = 'oidc~former' where principal_id = $1 and privilege = 'describe'", bob.id)
    assert world.admin.post(
        f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/grants",
        {"writes": [{"privilege": "select", "principal": {"user": bob.id}}]},
    ).is_success
    assert decide(bob, id, "end").status_code == 204
    assert read(bob, id)["ended-by"] == bob.id
    assert may_read(bob, world, table), "the grant of the administrator stays"
    assert decide(owner, id, "end").status_code == 204, "repeating an end has no effect"
    world.revoke("select", bob, "table", table.uuid)
    assert not may_read(bob, world, table)


def test_ordinary_revocation_of_the_grant_ends_the_request(world: World, table: Table) -> None:
    bob = _describer(world, table)
    id = asked(bob, on_table(world, table))
    assert decide(world.admin, id, "approve").status_code == 204
    world.revoke("select", bob, "table", table.uuid)
    assert read(bob, id)["status"] == "ended"


def test_approval_does_not_shorten_a_grant_of_the_same_grantor(world: World, table: Table) -> None:
    bob = _describer(world, table)
    world.grant("select", bob, "table", table.uuid)
    id = asked(bob, on_table(world, table), "select", "modify")
    refused = decide(world.admin, id, "approve")
    assert (refused.status_code, error_of(refused)["type"]) == (409, "AccessAlreadyGranted")
    assert decide(world.admin, id, "approve", {"privileges": ["modify"]}).status_code == 204


def test_pending_requests_are_limited_by_user_and_repeated_ones_refused(world: World, table: Table) -> None:
    bob = _describer(world, table)
    id = asked(bob, on_table(world, table))
    again = ask(bob, on_table(world, table), reason="once more")
    assert (again.status_code, error_of(again)["type"]) == (409, "AccessRequestAlreadyOpen")
    assert id in error_of(again)["message"]
    world.sql(
        "insert into access_requests (id, principal, project_id, object_type, object_id, name, privileges, reason, "
        "duration, expires_at) select gen_random_uuid(), $1, $2, 'project', $2, 'p', '{select}', 'r', 60, "
        "now() + interval '1 h' from generate_series(1, 49)",
        bob.id,
        world.project,
    )
    more = ask(bob, on_table(world, table), "modify")
    assert (more.status_code, error_of(more)["type"]) == (409, "TooManyAccessRequests")
    assert decide(bob, id, "withdraw").status_code == 204
    assert ask(bob, on_table(world, table), "modify").status_code == 201


def test_reminder_is_possible_once_in_an_interval(world: World, table: Table) -> None:
    bob = _describer(world, table)
    id = asked(bob, on_table(world, table))
    early = decide(bob, id, "remind")
    assert (early.status_code, error_of(early)["type"]) == (409, "AccessReminderTooEarly")
    world.sql("update access_requests set created_at = now() - interval '2 days' where id = $1::text::uuid", id)
    assert decide(bob, id, "remind").status_code == 204
    assert "reminded-at" in read(bob, id)
    assert decide(bob, id, "remind").status_code == 409


def test_membership_of_a_role_can_be_requested(world: World, table: Table) -> None:
    bob, role = world.stranger("member"), make_role(world)
    world.grant("describe", bob, "project", world.project)
    path = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/grants"
    entry = {"privilege": "select", "principal": {"role": role}}
    assert world.admin.post(path, {"writes": [entry]}).status_code == 204
    id = asked(bob, {"type": "role", "role-id": role}, "assignee", duration_seconds=3600)
    assert decide(world.admin, id, "approve").status_code == 204
    assert may_read(bob, world, table)
    assert decide(world.admin, id, "end").status_code == 204
    assert not may_read(bob, world, table)


def test_command_requests_lists_and_approves(world: World, table: Table) -> None:
    bob = _describer(world, table)

    def run(person: Person, *words: str) -> str:
        done = world.lakegate("access", *words, "--gateway", world.base, "--token", person.token)
        assert done.returncode == 0, done.stderr
        return done.stdout

    on = ("--warehouse", world.warehouse, "--table", f"{table.namespace}.{table.name}")
    id = run(bob, "request", "select", *on, "--reason", "a report", "--for", "2h").strip()
    fields = next(each for each in run(world.admin, "requests", "--to-decide").splitlines() if id in each).split("\t")
    assert fields[1:6] == ["pending", bob.id, "select", "table", f"{table.namespace}.{table.name}"]
    run(world.admin, "approve", id, "--for", "1h", "--comment", "one hour")
    assert may_read(bob, world, table)
    assert read(bob, id)["comment"] == "one hour"
    run(bob, "end", id)
    other = run(bob, "request", "modify", *on, "--reason", "a fix").strip()
    run(world.admin, "deny", other, "--reason", "not now")
    third = run(bob, "request", "create", "--warehouse", world.warehouse, "--reason", "a fix").strip()
    run(bob, "withdraw", third)
    assert [read(bob, each)["status"] for each in (id, other, third)] == ["ended", "denied", "withdrawn"]
