# SPDX-License-Identifier: Apache-2.0
"""Requests for objects that the requester does not see, and what a request shows that an approval opens too."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stack.access_requests import ask, asked, decide, listed, may_read, on_table, read, requestable
from tests.support.stack.explained import CHECK, explain, of_table
from tests.support.stack.world import Table, World


def by_name(world: World, table: Table) -> dict[str, Any]:
    """Return the object of a request for a table by its name."""
    return {"type": "table", "warehouse-id": world.warehouse, "namespace": [table.namespace], "name": table.name}


@pytest.mark.parametrize("via", ["warehouse", "namespace", "role", "tag"])
def test_requester_asks_by_name_for_a_table_that_it_does_not_see(world: World, table: Table, via: str) -> None:
    bob = requestable(world, table, via)
    assert bob.get(table.path).status_code == 404
    made = ask(bob, by_name(world, table))
    assert made.status_code == 201, made.text
    assert made.json()["name"] == f"{table.namespace}.{table.name}"
    id = made.json()["id"]
    assert bob.get(table.path).status_code == 404, "the request alone shows nothing"
    assert not may_read(bob, world, table)
    assert decide(world.admin, id, "approve").status_code == 204
    assert may_read(bob, world, table)
    world.strip(bob)


def test_a_request_shows_what_an_approval_opens(world: World, ns: str) -> None:
    world.table(ns)
    world.table(ns)
    on = {"type": "namespace", "warehouse-id": world.warehouse, "namespace": [ns]}
    sees, blind, owner = (world.stranger(each) for each in ("sees", "blind", "owner"))
    world.grant("describe", sees, "namespace", world.namespace_id(ns))
    world.grant("requester", blind, "namespace", world.namespace_id(ns))
    world.grant("manage_grants", owner, "namespace", world.namespace_id(ns))
    made, hidden = ask(sees, on), ask(blind, on)
    opens = [{"type": "table", "count": 2}]
    assert made.json()["opens"] == read(sees, made.json()["id"])["opens"] == opens
    assert "opens" not in hidden.json()
    assert "opens" not in read(blind, hidden.json()["id"])
    assert read(owner, hidden.json()["id"])["opens"] == opens, "who decides knows all"
    assert sorted(listed(owner, mine="false")) == sorted([made.json()["id"], hidden.json()["id"]])


def test_a_request_for_a_table_opens_nothing_else(world: World, table: Table) -> None:
    bob = requestable(world, table, "namespace")
    assert read(bob, asked(bob, on_table(world, table)))["opens"] == []


def test_the_right_to_request_is_an_ordinary_grant(world: World, table: Table) -> None:
    bob = requestable(world, table, "namespace")
    found = explain(world.admin, of_table(world, table.uuid, "request_access"), identity={"user": bob.id})
    assert found["decision"] == "allowed"
    (witness,) = found["relationships"]["witnesses"]
    (grant,) = [each for each in witness["facts"] if each["kind"] == "grant"]
    assert (grant["relation"], grant["object"]["type"]) == ("requester", "namespace")
    checked = world.admin.post(
        CHECK, {"operation": of_table(world, table.uuid, "request_access"), "identity": {"user": bob.id}}
    )
    assert checked.json()["allowed"] is True
