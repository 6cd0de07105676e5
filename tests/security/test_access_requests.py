# SPDX-License-Identifier: Apache-2.0
"""Attacks on access requests: approve the own one, gain more than an approver may grant, learn of hidden objects."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack.access_requests import REQUESTS, ask, asked, decide, listed, may_read, on_table, read
from tests.support.stack.data_policies import make
from tests.support.stack.revocation import make_role
from tests.support.stack.world import Person, Table, World, error_of


def _person(world: World, table: Table, *privileges: str) -> Person:
    person = world.stranger()
    for privilege in privileges:
        world.grant(privilege, person, "table", table.uuid)
    return person


def _member(world: World, person: Person, table: Table, privilege: str) -> dict[str, str]:
    """Make the person a member of a role with the privilege; return the header that assumes the role."""
    role = make_role(world)
    entry = {"privilege": privilege, "principal": {"role": role}}
    path = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/grants"
    assert world.admin.post(path, {"writes": [entry]}).status_code == 204
    world.grant("assignee", person, "role", role)
    return {"x-assume-role": role}


@pytest.mark.threat("LG-REQ-01")
def test_requester_with_the_right_to_grant_cannot_decide_about_its_own_request(world: World, table: Table) -> None:
    bob = _person(world, table, "describe", "manage_grants")
    id = asked(bob, on_table(world, table))
    for action in ("approve", "deny"):
        refused = decide(bob, id, action)
        assert (refused.status_code, error_of(refused)["type"]) == (403, "OwnAccessRequestForbidden")
    assert read(bob, id)["status"] == "pending"
    assert not may_read(bob, world, table)


@pytest.mark.threat("LG-REQ-01")
def test_requester_cannot_approve_through_a_role(world: World, table: Table) -> None:
    bob = _person(world, table, "describe")
    role = _member(world, bob, table, "manage_grants")
    id = asked(bob, on_table(world, table))
    for headers in ({}, role):
        refused = bob.send("POST", f"{REQUESTS}/{id}/approve", json={}, headers=headers)
        assert (refused.status_code, error_of(refused)["type"]) == (403, "OwnAccessRequestForbidden")
    # A request that is made as the role is still the user's own.
    body = {"object": on_table(world, table), "privileges": ["modify"], "reason": "as the role"}
    made = bob.send("POST", REQUESTS, json=body, headers={**role})
    if made.status_code == 201:
        assert made.json()["principal"] == {"user": bob.id}
        assert decide(bob, made.json()["id"], "approve").status_code == 403
    assert not may_read(bob, world, table)


@pytest.mark.threat("LG-REQ-02")
@pytest.mark.parametrize("held", [(), ("describe",), ("select",), ("modify",)])
def test_principal_without_the_right_to_grant_can_neither_see_nor_decide(
    world: World, table: Table, held: tuple[str, ...]
) -> None:
    bob, mallory = _person(world, table, "describe"), _person(world, table, *held)
    id = asked(bob, on_table(world, table))
    absent = str(uuid4())
    for method, below, body in (
        ("GET", "", None),
        *(("POST", f"/{each}", {"reason": "x"} if each == "deny" else {}) for each in ("approve", "deny")),
        *(("POST", f"/{each}", None) for each in ("end", "withdraw", "remind")),
    ):
        answers = [
            mallory.send(method, f"{REQUESTS}/{each}{below}", **({} if body is None else {"json": body}))
            for each in (id, absent)
        ]
        texts = {answer.text.replace(id, "ID").replace(absent, "ID") for answer in answers}
        assert [answer.status_code for answer in answers] == [404, 404], (below, answers[0].text)
        messages = {error_of(answer)["message"].replace(id, "ID").replace(absent, "ID") for answer in answers}
        assert len(messages) == 1, texts
    assert listed(mallory) == []
    assert read(bob, id)["status"] == "pending"


@pytest.mark.threat("LG-REQ-02")
def test_approver_gives_no_privilege_that_it_cannot_grant(world: World, table: Table) -> None:
    bob = _person(world, table, "describe")
    # `pass_grants` grants what the holder has: `select` and not `modify`.
    carol = _person(world, table, "select", "pass_grants")
    id = asked(bob, on_table(world, table), "select", "modify")
    whole = decide(carol, id, "approve")
    assert whole.status_code == 403, whole.text
    assert read(bob, id)["status"] == "pending"
    assert not may_read(bob, world, table)
    assert decide(carol, id, "approve", {"privileges": ["select"]}).status_code == 204
    assert read(bob, id)["granted"] == ["select"]


@pytest.mark.threat("LG-REQ-02")
def test_binding_privileges_are_not_approved_by_owners(world: World, table: Table) -> None:
    bob, owner = _person(world, table, "describe"), _person(world, table, "ownership")
    id = asked(bob, on_table(world, table), "manage_tags")
    assert decide(owner, id, "approve").status_code in (403, 404)
    assert read(bob, id)["status"] == "pending"


@pytest.mark.threat("LG-REQ-02")
def test_a_restriction_is_not_requested_because_its_requester_could_end_it(world: World) -> None:
    bob, policy = world.stranger(), make(world)
    world.grant("auditor", bob, "project", world.project)
    on = {"type": "data-policy", "data-policy-id": policy["id"]}
    for privileges in (["subject"], ["exempt", "subject"]):
        refused = ask(bob, on, *privileges)
        assert (refused.status_code, error_of(refused)["type"]) == (400, "AccessRequestInvalid"), privileges


@pytest.mark.threat("LG-REQ-02")
def test_revoked_right_to_grant_ends_the_right_to_approve(world: World, table: Table) -> None:
    bob, carol = _person(world, table, "describe"), _person(world, table, "manage_grants")
    id = asked(bob, on_table(world, table))
    assert listed(carol) == [id]
    world.revoke("manage_grants", carol, "table", table.uuid)
    assert decide(carol, id, "approve").status_code == 404
    assert listed(carol) == []
    assert read(bob, id)["status"] == "pending"


@pytest.mark.threat("LG-REQ-03")
def test_request_for_an_invisible_object_is_answered_like_one_for_an_absent_object(world: World, table: Table) -> None:
    stranger = world.stranger()
    absent = str(uuid4())
    objects: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (on_table(world, table), {**on_table(world, table), "table-id": absent}),
        (
            {"type": "table", "warehouse-id": world.warehouse, "namespace": [table.namespace], "name": table.name},
            {"type": "table", "warehouse-id": world.warehouse, "namespace": [table.namespace], "name": "absent"},
        ),
        (
            {"type": "namespace", "warehouse-id": world.warehouse, "namespace": [table.namespace]},
            {"type": "namespace", "warehouse-id": world.warehouse, "namespace": ["absent"]},
        ),
        (
            {"type": "warehouse", "warehouse-id": world.warehouse},
            {"type": "warehouse", "warehouse-id": absent},
        ),
        ({"type": "project", "project-id": world.project}, {"type": "project", "project-id": "absent"}),
    ]
    for hidden, unknown in objects:
        answers = [ask(stranger, on) for on in (hidden, unknown)]
        assert [answer.status_code for answer in answers] == [404, 404], hidden
        names = (table.uuid, absent, table.name, "absent", table.namespace, world.warehouse, world.project)
        messages = set()
        for answer in answers:
            message = error_of(answer)["message"]
            for name in names:
                message = message.replace(name, "NAME")
            messages.add((error_of(answer)["type"], message))
        assert len(messages) == 1, messages
    assert listed(stranger) == []


@pytest.mark.threat("LG-REQ-04")
def test_access_is_never_longer_than_allowed_or_requested(world: World, table: Table) -> None:
    bob = _person(world, table, "describe")
    for seconds in (7_776_001, 31_536_001, 0, -1, 10**30):
        assert ask(bob, on_table(world, table), duration_seconds=seconds).status_code == 400, seconds
    id = asked(bob, on_table(world, table), duration_seconds=600)
    for body in ({"duration-seconds": 601}, {"expires-at": "2999-01-01T00:00:00Z"}, {"privileges": ["modify"]}):
        assert decide(world.admin, id, "approve", body).status_code == 400, body
    assert read(bob, id)["status"] == "pending"


@pytest.mark.threat("LG-REQ-04")
def test_one_of_several_concurrent_decisions_takes_effect(world: World, table: Table) -> None:
    bob = _person(world, table, "describe")
    carol, dave = (_person(world, table, "manage_grants") for _ in range(2))
    for _ in range(3):
        id = asked(bob, on_table(world, table), duration_seconds=3600)
        with ThreadPoolExecutor(4) as pool:
            sent = [
                pool.submit(decide, carol, id, "approve"),
                pool.submit(decide, dave, id, "approve"),
                pool.submit(decide, dave, id, "deny"),
                pool.submit(decide, bob, id, "withdraw"),
            ]
            statuses = [each.result().status_code for each in sent]
        assert statuses.count(204) == 1, statuses
        assert set(statuses) <= {204, 409, 429, 503}, statuses
        found = read(bob, id)
        assert found["status"] == {0: "approved", 1: "approved", 2: "denied", 3: "withdrawn"}[statuses.index(204)]
        rows = world.sql("select granted_by from grants where principal_id = $1 and privilege = 'select'", bob.id)
        assert len(rows) == (1 if found["status"] == "approved" else 0)
        if found["status"] == "approved":
            assert decide(bob, id, "end").status_code == 204
            assert not may_read(bob, world, table)


@pytest.mark.threat("LG-REQ-04")
def test_withdrawn_or_expired_request_gives_no_access(world: World, table: Table) -> None:
    bob = _person(world, table, "describe")
    withdrawn, expired = asked(bob, on_table(world, table)), asked(bob, on_table(world, table), "modify")
    assert decide(bob, withdrawn, "withdraw").status_code == 204
    world.sql("update access_requests set expires_at = now() - interval '1 s' where id = $1::text::uuid", expired)
    for id, status in ((withdrawn, "withdrawn"), (expired, "expired")):
        for action in ("approve", "deny"):
            refused = decide(world.admin, id, action)
            assert (refused.status_code, error_of(refused)["type"]) == (409, "AccessRequestNotOpen")
        assert read(bob, id)["status"] == status
    assert not may_read(bob, world, table)
