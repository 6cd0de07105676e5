# SPDX-License-Identifier: Apache-2.0
"""Checks about another principal end with the right: a cached answer never outlives a revocation.

Trino's bridge sends such checks, and the gateway caches their allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import quote

import pytest

from tests.support.stack.columns import BATCH, wide
from tests.support.stack.data_policies import MASK, change, make, target
from tests.support.stack.lifecycle import until
from tests.support.stack.roles import add
from tests.support.stack.roles import make as make_role
from tests.support.stack.token_groups import give, take
from tests.support.stack.world import Person, Table, World, send_until_decided

#: The first check is sent to OpenFGA, the second one can be answered from the cache.
TWICE = 2


@pytest.fixture
def inspector(world: World) -> Iterator[Person]:
    """Return a service that may check the rights of every user in the warehouse, and apply their restrictions."""
    for privilege in ("inspector", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    yield world.etl
    world.strip(world.etl)


@pytest.fixture
def table(world: World, ns: str) -> Table:
    return wide(world, ns)


def reads(world: World, inspector: Person, user: Person, table: Table) -> object:
    """Return the answer about the table: True for all columns, restrictions for some values, False for none."""
    about = {"warehouse-id": world.warehouse, "namespace": [table.namespace], "table": table.name}
    operation = {"table": {**about, "action": {"action": "read_columns"}, "restrictions": "trino"}}
    body = {"delegated": True, "checks": [{"identity": {"user": user.id}, "operation": operation}]}
    answer = send_until_decided(lambda: inspector.post(BATCH, body))
    assert answer.status_code == 200, answer.text
    (result,) = answer.json()["results"]
    return result.get("restrictions", True) if result["allowed"] else False


def test_a_revoked_grant_ends_the_answers_about_its_holder(world: World, inspector: Person, table: Table) -> None:
    user = world.stranger()
    for kind, id in (("table", table.uuid), ("namespace", world.namespace_id(table.namespace))):
        assert reads(world, inspector, user, table) is False
        world.grant("select", user, kind, id)
        assert [reads(world, inspector, user, table) for _ in range(TWICE)] == [True, True]
        world.revoke("select", user, kind, id)
        assert reads(world, inspector, user, table) is False, kind


def test_a_lost_role_ends_the_answers_about_its_former_member(world: World, inspector: Person, table: Table) -> None:
    user, role = world.stranger(), make_role(world)
    give(world, "select", role, "table", table.uuid)
    assert add(world, role, "user", user.id).status_code == 204
    assert [reads(world, inspector, user, table) for _ in range(TWICE)] == [True, True]
    take(world, "select", role, "table", table.uuid)
    assert reads(world, inspector, user, table) is False
    give(world, "select", role, "table", table.uuid)
    assert [reads(world, inspector, user, table) for _ in range(TWICE)] == [True, True]
    path = f"/management/v1/role/{role['id']}/members/user/{user.id}"
    assert send_until_decided(lambda: world.admin.delete(path)).status_code == 204
    assert reads(world, inspector, user, table) is False


def test_a_grant_ends_at_its_expiry_for_answers_about_its_holder(world: World, inspector: Person, table: Table) -> None:
    user = world.stranger()
    ends = datetime.now(UTC) + timedelta(seconds=4)
    entry = {"privilege": "select", "principal": {"user": user.id}, "expires-at": ends.isoformat()}
    path = f"/management/v1/warehouse/{world.warehouse}/table/{table.uuid}/grants"
    granted = send_until_decided(lambda: world.admin.post(path, {"writes": [entry]}))
    assert granted.status_code == 204, granted.text
    before = reads(world, inspector, user, table)
    assert before is True or datetime.now(UTC) > ends
    until(lambda: datetime.now(UTC) > ends + timedelta(seconds=1), "the grant did not expire")
    assert reads(world, inspector, user, table) is False


def test_a_revoked_exemption_restricts_the_next_answer(world: World, inspector: Person, table: Table) -> None:
    user, policy = world.stranger(), make(world, MASK)
    world.grant("select", user, "table", table.uuid)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    masked = reads(world, inspector, user, table)
    assert isinstance(masked, dict)
    assert masked["column-masks"]
    world.grant("exempt", user, "data-policy", policy["id"])
    assert [reads(world, inspector, user, table) for _ in range(TWICE)] == [True, True]
    world.revoke("exempt", user, "data-policy", policy["id"])
    assert reads(world, inspector, user, table) == masked
    world.admin.send("DELETE", f"/management/v1/data-policy/{policy['id']}", params={"force": "true"})


def test_an_exemption_through_a_nested_role_ends_with_either_membership(
    world: World, inspector: Person, table: Table
) -> None:
    user, policy = world.stranger(), make(world, MASK)
    outer, inner = make_role(world), make_role(world)
    world.grant("select", user, "table", table.uuid)
    assert change(world, policy, add=[target(world, table)]).status_code == 204
    give(world, "exempt", outer, "data-policy", policy["id"])
    links = ((outer, "role", inner["id"]), (inner, "user", user.id))
    for role, kind, id in links:
        assert add(world, role, kind, id).status_code == 204
    for role, kind, id in links:
        assert [reads(world, inspector, user, table) for _ in range(TWICE)] == [True, True]
        path = f"/management/v1/role/{role['id']}/members/{kind}/{id}"
        assert send_until_decided(partial(world.admin.delete, path)).status_code == 204
        assert isinstance(reads(world, inspector, user, table), dict)
        assert add(world, role, kind, id).status_code == 204
    world.admin.send("DELETE", f"/management/v1/data-policy/{policy['id']}", params={"force": "true"})


def test_a_table_that_leaves_a_namespace_ends_the_answers_about_the_reader_of_that_namespace(
    world: World, inspector: Person, table: Table
) -> None:
    user, other = world.stranger(), world.namespace()
    world.grant("select", user, "namespace", world.namespace_id(table.namespace))
    assert [reads(world, inspector, user, table) for _ in range(TWICE)] == [True, True]
    old, new = ({"namespace": [at], "name": table.name} for at in (table.namespace, other))
    body = {"source": old, "destination": new}
    assert send_until_decided(lambda: world.admin.post(f"{world.root}/tables/rename", body)).status_code == 204
    moved = replace(table, namespace=other)
    assert [reads(world, inspector, user, each) for each in (table, moved)] == [False, False]


def test_a_deleted_user_has_no_answers_of_the_former_one(world: World, inspector: Person, table: Table) -> None:
    user = world.stranger()
    world.grant("select", user, "table", table.uuid)
    assert [reads(world, inspector, user, table) for _ in range(TWICE)] == [True, True]
    path = f"/management/v1/user/{quote(user.id, safe='')}"
    assert send_until_decided(lambda: world.admin.delete(path)).status_code == 204
    assert reads(world, inspector, user, table) is False
