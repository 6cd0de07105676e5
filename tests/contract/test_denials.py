# SPDX-License-Identifier: Apache-2.0
"""Refused requests: the error message names the missing right and a page, which leads to the reason and a request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest

from tests.support.stack.assumed_roles import acting
from tests.support.stack.grants import give, strangers  # noqa: F401 - a fixture
from tests.support.stack.roles import ROLE, add, make
from tests.support.stack.world import Person, Table, World, error_of, error_triple, send_until_decided

DENIALS = "/management/v1/access/denials"
REQUESTS = "/management/v1/access/requests"

pytestmark = pytest.mark.usefixtures("strangers")


def refused(world: World, by: Person, table: Table, headers: Mapping[str, str] | None = None) -> str:
    """Drop a visible table without the right; return the id of the denial in the message."""
    if headers is None:
        give(world, "table", table.uuid, "describe", {"user": by.id})
    answer = send_until_decided(lambda: by.delete(table.path, headers=headers or {}), unless=403)
    assert answer.status_code == 403, answer.text
    message = error_of(answer)["message"]
    assert "it needs `can_drop` on the table" in message
    found = re.search(r" Reason, and request for access: (\S+)/ui\?denial=([0-9a-f-]{36})$", message)
    assert found is not None, message
    assert found[1] == str(by.get("/management/v1/info").request.url).partition("/management")[0]
    return found[2]


def test_the_refused_caller_reads_the_reason_of_its_denial(world: World, ns: str) -> None:
    table = world.table(ns)
    id = refused(world, world.analyst, table)
    found: dict[str, Any] = world.analyst.get(f"{DENIALS}/{id}").json()
    assert (found["id"], found["operation"]) == (id, "drop_table")
    assert (found["explanation"]["decision"], found["explanation"]["action"]) == ("denied", "drop")
    assert found["explanation"]["object"]["id"] == table.uuid


def test_a_caller_that_may_read_assignments_opens_the_link_too(world: World, ns: str) -> None:
    table = world.table(ns)
    id = refused(world, world.analyst, table)
    found = world.admin.get(f"{DENIALS}/{id}").json()["explanation"]
    assert (found["decision"], found["principal"]["id"]) == ("denied", world.analyst.id)


def test_for_all_other_callers_the_denial_does_not_exist(world: World, ns: str) -> None:
    table = world.table(ns)
    id, unused = refused(world, world.analyst, table), str(uuid4())
    give(world, "table", table.uuid, "describe", {"user": world.steward.id})
    for person in (world.carol, world.steward):
        other = person.get(f"{DENIALS}/{id}")
        status, type, message = error_triple(person.get(f"{DENIALS}/{unused}"))
        assert (status, type) == (404, "DenialNotFound")
        assert error_triple(other) == (status, type, message.replace(unused, id))


@pytest.fixture
def role(world: World, ns: str) -> Iterator[dict[str, Any]]:
    """Return a role with bob as member."""
    role = make(world)
    assert add(world, role, "user", world.bob.id).status_code == 204
    yield role
    assert world.admin.delete(f"{ROLE}/{role['id']}").status_code == 204


def test_a_member_opens_the_denial_of_its_role_without_the_header(world: World, ns: str, role: dict[str, Any]) -> None:
    table = world.table(ns)
    give(world, "table", table.uuid, "describe", {"role": role["id"]})
    id = refused(world, world.bob, table, acting(role))
    for headers in (acting(role), {}):
        found = world.bob.get(f"{DENIALS}/{id}", headers=headers)
        assert found.status_code == 200, found.text
        explanation = found.json()["explanation"]
        assert (explanation["decision"], explanation["principal"]["id"]) == ("denied", role["id"])


def test_only_the_refused_member_opens_the_denial_of_a_role(world: World, ns: str, role: dict[str, Any]) -> None:
    table = world.table(ns)
    give(world, "table", table.uuid, "describe", {"role": role["id"]})
    id = refused(world, world.bob, table, acting(role))
    other = world.stranger()
    assert add(world, role, "user", other.id).status_code == 204
    assert other.get(table.path).status_code == 200, "another member sees the table"
    assert error_triple(other.get(f"{DENIALS}/{id}"))[:2] == (404, "DenialNotFound")
    # A former member has no right to know what the role may do, also if it still sees the table.
    give(world, "table", table.uuid, "describe", {"user": world.bob.id})
    assert world.admin.delete(f"{ROLE}/{role['id']}/members/user/{world.bob.id}").status_code == 204
    assert world.bob.get(table.path).status_code == 200
    assert error_triple(world.bob.get(f"{DENIALS}/{id}"))[:2] == (404, "DenialNotFound")


def test_a_hidden_object_gives_no_denial(world: World, ns: str) -> None:
    table = world.table(ns)
    answer = world.carol.delete(table.path)
    assert answer.status_code == 404
    assert "denial" not in answer.text


def test_the_way_from_a_denial_to_an_expiring_grant(world: World, ns: str) -> None:
    """Follow the link, request the first repair, approve it for a time, and use it."""
    table = world.table(ns)
    found = world.analyst.get(f"{DENIALS}/{refused(world, world.analyst, table)}").json()["explanation"]
    (missing,) = found["relationships"]["repairs"][0]["grants"]
    on = {"type": missing["object"]["type"], "table-id": missing["object"]["id"], "warehouse-id": found["warehouse-id"]}
    body = {"object": on, "privileges": [missing["privilege"]], "reason": "retire the table"}
    made = world.analyst.post(REQUESTS, body)
    assert made.status_code == 201, made.text
    approved = world.admin.post(f"{REQUESTS}/{made.json()['id']}/approve", {"duration-seconds": 3600})
    assert approved.status_code == 204, approved.text
    assert send_until_decided(lambda: world.analyst.delete(table.path)).status_code == 204
