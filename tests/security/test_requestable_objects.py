# SPDX-License-Identifier: Apache-2.0
"""Attacks by users that may request access to objects: learn more of them than their names, or gain a right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack.access_requests import ask, asked, decide, listed, may_read, on_table, read
from tests.support.stack.tags import attach, define, detach, tags_path
from tests.support.stack.world import Person, Table, World, error_of


def _requester(world: World, table: Table) -> Person:
    person = world.stranger("requester")
    world.grant("requester", person, "namespace", world.namespace_id(table.namespace))
    return person


def _answer(person: Person, on: dict[str, Any], *privileges: str, names: Sequence[str]) -> tuple[int, str, str]:
    """Return the status, type and message of the answer to a request, with NAME in place of the names."""
    answer = ask(person, on, *privileges)
    error = error_of(answer)
    message = error["message"]
    for name in names:
        message = message.replace(name, "NAME")
    return answer.status_code, error["type"], message


@pytest.mark.threat("LG-REQ-03")
def test_requester_of_another_place_gets_the_answer_for_an_absent_object(world: World, table: Table) -> None:
    elsewhere = world.table(world.namespace())
    mallory, stranger = _requester(world, elsewhere), world.stranger()
    for on, absent in (
        (on_table(world, table), {**on_table(world, table), "table-id": str(uuid4())}),
        ({"type": "warehouse", "warehouse-id": world.warehouse}, {"type": "warehouse", "warehouse-id": str(uuid4())}),
    ):
        names = [str(each.get("table-id") or each["warehouse-id"]) for each in (on, absent)]
        answers = {_answer(person, each, names=names) for person in (mallory, stranger) for each in (on, absent)}
        assert len(answers) == 1, answers
        assert answers.pop()[0] == 404
    # In its own place, an absent name is answered alike as well.
    here = {"type": "table", "warehouse-id": world.warehouse, "namespace": [elsewhere.namespace], "name": "absent"}
    assert ask(mallory, here).status_code == 404


@pytest.mark.threat("LG-REQ-03")
def test_requester_learns_only_the_name_and_type_of_the_object(world: World, table: Table) -> None:
    bob = _requester(world, table)
    made = ask(bob, on_table(world, table)).json()
    known = {"id", "status", "principal", "object", "name", "privileges", "reason", "duration-seconds", "created-at"}
    assert set(made) == known | {"expires-at", "opens"}
    assert made["opens"] == []
    within = f"/management/v1/warehouse/{world.warehouse}"
    for path in (
        table.path,
        f"{world.root}/namespaces/{table.namespace}",
        f"{world.root}/namespaces/{table.namespace}/tables",
        f"{within}/table/{table.uuid}/grants",
        f"{within}/table/{table.uuid}/tags",
        within,
    ):
        assert bob.get(path).status_code == 404, path
    listed_warehouses = bob.get("/management/v1/warehouse", params={"project-id": world.project})
    assert world.warehouse not in listed_warehouses.text
    assert not may_read(bob, world, table)


@pytest.mark.threat("LG-REQ-01")
def test_requester_of_an_invisible_object_cannot_decide_about_its_request(world: World, table: Table) -> None:
    bob, other = _requester(world, table), _requester(world, table)
    id = asked(bob, on_table(world, table))
    for action in ("approve", "deny"):
        refused = decide(bob, id, action)
        assert (refused.status_code, error_of(refused)["type"]) == (403, "OwnAccessRequestForbidden")
        assert decide(other, id, action).status_code == 404
    assert listed(other) == []


@pytest.mark.threat("LG-REQ-03")
def test_end_of_the_right_ends_new_requests_and_keeps_the_own_ones_withdrawable(world: World, table: Table) -> None:
    bob = _requester(world, table)
    id = asked(bob, on_table(world, table))
    world.revoke("requester", bob, "namespace", world.namespace_id(table.namespace))
    assert ask(bob, on_table(world, table), "modify").status_code == 404
    world.sql("update tables set name = 'renamed', name_key = 'renamed' where id = $1::text::uuid", table.uuid)
    found = read(bob, id)
    assert (found["status"], found["name"]) == ("pending", f"{table.namespace}.{table.name}"), "the name of that time"
    assert decide(bob, id, "withdraw").status_code == 204


@pytest.mark.threat("LG-REQ-03")
def test_a_tag_opens_requests_only_for_objects_that_have_it(world: World, table: Table) -> None:
    bob, tag, other = world.stranger(), define(world), define(world)
    path = f"/management/v1/tag-definition/{tag['id']}/grants"
    made = world.admin.post(path, {"writes": [{"privilege": "requester", "principal": {"user": bob.id}}]})
    assert made.status_code == 204, made.text
    assert attach(world, other, tags_path(world, "table", table.uuid)).is_success
    assert ask(bob, on_table(world, table)).status_code == 404
    assert attach(world, tag, tags_path(world, "table", table.uuid)).is_success
    assert ask(bob, on_table(world, table)).status_code == 201
    assert detach(world, tag, tags_path(world, "table", table.uuid)).is_success
    assert ask(bob, on_table(world, table), "modify").status_code == 404
    assert bob.get(f"/management/v1/tag-definition/{tag['id']}").status_code == 404


@pytest.mark.threat("LG-REQ-03")
def test_requester_of_a_tag_cannot_request_the_tag(world: World) -> None:
    bob, tag, absent = world.stranger(), define(world), str(uuid4())
    path = f"/management/v1/tag-definition/{tag['id']}/grants"
    made = world.admin.post(path, {"writes": [{"privilege": "requester", "principal": {"user": bob.id}}]})
    assert made.status_code == 204, made.text
    objects = [{"type": "tag", "tag-id": each} for each in (tag["id"], absent)]
    answers = {_answer(bob, each, "apply", names=(tag["id"], absent)) for each in objects}
    assert len(answers) == 1, answers
    assert answers.pop()[0] == 404


@pytest.mark.threat("LG-REQ-02")
def test_requesters_are_appointed_only_by_principals_that_manage_grants(world: World, table: Table) -> None:
    bob, reader = _requester(world, table), world.stranger()
    world.grant("modify", reader, "namespace", world.namespace_id(table.namespace))
    space = world.namespace_id(table.namespace)
    world.grant("requester", reader, "namespace", space, by=reader, expect=403)
    world.grant("requester", reader, "namespace", space, by=bob, expect=404)
