# SPDX-License-Identifier: Apache-2.0
"""Expressions of policies contain literals and mapped values of other principals: who gets them, and who does not.

Every answer about a restricted table says the same: lists of actions, permission checks and the load.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.stack.columns import BATCH, wide
from tests.support.stack.data_policies import MASK, change, make, target
from tests.support.stack.exchanging import acting
from tests.support.stack.world import Person, Table, World, error_of, send_until_decided

SECRET = {
    "kind": "row-filter",
    "test": {"type": "compare", "operator": "eq", "column": {"name": "name"}, "value": "a confidential literal"},
}


@pytest.fixture(autouse=True)
def clean(world: World) -> Iterator[None]:
    """Remove all policies and the grants of the callers, before and after the test."""

    def remove() -> None:
        world.remove_policies()
        for person in (world.carol, world.etl, world.analyst):
            world.strip(person)

    remove()
    yield
    remove()


@pytest.fixture
def table(world: World, ns: str) -> Table:
    """Return a table that carol may read, with a confidential filter."""
    table = wide(world, ns)
    world.grant("select", world.carol, "table", table.uuid)
    assert change(world, make(world, SECRET), add=[target(world, table)]).status_code == 204
    return table


def asked(world: World, table: Table, action: str = "read_columns", **more: Any) -> dict[str, Any]:
    """Return a check about the table."""
    about = {"warehouse-id": world.warehouse, "table-id": table.uuid, "action": action, **more}
    return {"operation": {"table": about}}


def result(caller: Person, check: dict[str, Any], **body: Any) -> dict[str, Any]:
    """Return the only result of a batch."""
    answer = send_until_decided(lambda: caller.post(BATCH, {"checks": [check], **body}))
    assert answer.status_code == 200, answer.text
    [found] = answer.json()["results"]
    only: dict[str, Any] = found
    return only


@pytest.mark.threat("LG-DEC-41")
@pytest.mark.parametrize("privilege", ["inspector", "delegate"])
def test_an_inspector_learns_that_restrictions_exist_and_no_literal(world: World, table: Table, privilege: str) -> None:
    world.grant(privilege, world.etl, "warehouse", world.warehouse)
    about = {**asked(world, table, restrictions="trino"), "identity": {"user": world.carol.id}}
    body = {"checks": [about], "delegated": True}
    answer = world.etl.post(BATCH, body)
    assert "confidential" not in answer.text
    assert answer.json() == {"results": [{"allowed": False, "restricted": True}]}
    world.grant("enforcer", world.etl, "table", table.uuid)
    shown = result(world.etl, about, delegated=True)
    assert "confidential" in shown["restrictions"]["row-filter"], "the bridge of an enforcing engine needs them"
    world.revoke("enforcer", world.etl, "table", table.uuid)
    assert send_until_decided(lambda: world.etl.post(BATCH, body)).json() == answer.json()


@pytest.mark.threat("LG-DEC-41")
def test_a_reader_of_assignments_gets_the_expressions_of_others_only_if_it_may_read_the_policies(
    world: World, table: Table
) -> None:
    about = {**asked(world, table, restrictions="trino"), "identity": {"user": world.carol.id}}
    world.grant("manage_grants", world.analyst, "table", table.uuid)
    refused = {"allowed": False, "restricted": True}
    assert result(world.analyst, about) == refused
    assert result(world.carol, asked(world, table, restrictions="trino")) == refused, "not one's own either"
    assert "confidential" in result(world.admin, about)["restrictions"]["row-filter"]


def test_actions_checks_and_load_agree_about_a_restricted_reader(world: World, table: Table) -> None:
    path = f"warehouse/{world.warehouse}/table/{table.uuid}"
    catalog = world.carol.get(f"/management/v1/{path}/actions").json()["allowed-actions"]
    access = world.carol.get(f"/management/v1/permissions/{path}/access").json()
    assert {"action": "read_data", "restricted": True} in catalog
    assert "read_data" in access["allowed-actions"]
    assert access["restricted-actions"] == ["read_columns", "read_data"]
    assert result(world.carol, asked(world, table, "read_data")) == {"allowed": False, "restricted": True}
    single = world.carol.post("/management/v1/permissions/check", asked(world, table, "read_data"))
    assert single.json() == {"allowed": False, "restricted": True}
    assert world.carol.get(table.path).status_code == 403
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    assert acting(world, world.etl, world.carol).get(table.path).status_code == 200, "restricted, not refused"


def test_a_restricted_writer_has_no_write_action_unless_every_policy_allows_appends(world: World, table: Table) -> None:
    world.grant("modify", world.carol, "table", table.uuid)
    path = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/actions"

    def actions() -> dict[str, bool]:
        listed = send_until_decided(lambda: world.carol.get(path)).json()["allowed-actions"]
        return {each["action"]: each.get("restricted", False) for each in listed}

    refused = actions()
    assert not {"write_data", "commit", "unregister"} & set(refused)
    assert refused["drop"] is False
    world.sql("update data_policies set allow_append = true")
    world.sql("update warehouses set data_policy_revision = gen_random_uuid() where id = $1::uuid", world.warehouse)
    appending = actions()
    assert (appending["write_data"], appending["commit"]) == (True, True)


def test_an_unrestricted_reader_has_unmarked_actions(world: World, ns: str) -> None:
    table = wide(world, ns)
    world.grant("select", world.carol, "table", table.uuid)
    path = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/actions"
    assert {"action": "read_data"} in world.carol.get(path).json()["allowed-actions"]
    policy = make(world, MASK)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    assert {"action": "read_data", "restricted": True} in world.carol.get(path).json()["allowed-actions"]
    world.grant("exempt", world.carol, "data-policy", policy["id"])
    assert {"action": "read_data"} in send_until_decided(lambda: world.carol.get(path)).json()["allowed-actions"]


@pytest.mark.parametrize("privilege", ["inspector", "delegate"])
@pytest.mark.parametrize("place", ["warehouse", "project"])
def test_an_inspector_that_does_not_say_delegated_gets_the_remedy(
    world: World, table: Table, privilege: str, place: str
) -> None:
    world.grant(privilege, world.etl, place, world.warehouse if place == "warehouse" else world.project)
    about = {**asked(world, table, "get_metadata"), "identity": {"user": world.carol.id}}
    absent = {**about, "operation": {"table": {**about["operation"]["table"], "table-id": world.warehouse}}}
    messages = set()
    for check in (about, absent):
        refused = world.etl.post(BATCH, {"checks": [check]})
        error = error_of(refused)
        assert (error["code"], error["type"]) == (403, "CannotInspectPermissions")
        messages.add(error["message"])
    assert len(messages) == 1, "an absent table and an invisible one get the same answer"
    assert '"delegated": true' in messages.pop()
    assert result(world.etl, about, delegated=True) == {"allowed": True}
    assert result(world.etl, asked(world, table, "get_metadata")) == {"allowed": False}, "checks about oneself stay"
