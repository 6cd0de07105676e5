# SPDX-License-Identifier: Apache-2.0
"""A table with a data policy, and an engine that enforces it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.stack.columns import wide
from tests.support.stack.lifecycle import fill
from tests.support.stack.world import Person, Table, World, error_of

MASK = {"kind": "mask", "action": "mask-alphanum", "columns": [{"name": "name"}]}
ONE = {
    "kind": "row-filter",
    "test": {"type": "compare", "operator": "eq", "column": {"name": "name"}, "value": "one"},
}
DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}
SIGN = {"region": "us-east-1", "method": "GET", "uri": "x", "headers": {}}


@pytest.fixture(autouse=True)
def clean(world: World) -> Iterator[None]:
    """Remove all policies and the grants of the engine and carol, before and after the test."""

    def remove() -> None:
        world.remove_policies()
        for person in (world.carol, world.etl):
            world.strip(person)

    remove()
    yield
    remove()


@pytest.fixture
def table(world: World, ns: str) -> Table:
    """Return a table with files."""
    table = wide(world, ns)
    fill(world, table.location)
    return table


@pytest.fixture
def engine(world: World) -> Person:
    """Return an engine with `delegate` and `enforcer`."""
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    return world.etl


def bind(world: World, definition: object, type: str, on: str, *, allow_append: bool = False) -> str:
    """Bind a new policy to an object; return its id."""
    id = str(uuid4())
    world.sql(
        """
        with policy as (
            insert into data_policies (id, project_id, name, name_key, definition, allow_append)
            select $1::uuid, project_id, $1::text, $1::text, $2::jsonb, $3 from warehouses where id = $4::uuid
            returning id),
        binding as (
            insert into data_policy_bindings (policy_id, object_type, object_id, warehouse_id, bound_by)
            select id, $5, $6::uuid, $4::uuid, 'test' from policy)
        update warehouses set data_policy_revision = gen_random_uuid() where id = $4::uuid
        """,
        id,
        json.dumps(definition),
        allow_append,
        world.warehouse,
        type,
        on,
    )
    return id


def id_of(table: Table) -> str:
    """Return the id of the table, which is the UUID of a created table."""
    return table.uuid


def restrictions(answer: httpx.Response) -> dict[str, Any]:
    """Return the restrictions of a load."""
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json().get("read-restrictions", {})
    return found


def refused_with_remedy(answer: httpx.Response) -> None:
    """Assert a 403 that names the remedy and nothing of the policy."""
    error = error_of(answer)
    assert (error["code"], error["type"]) == (403, "ForbiddenException"), error
    assert "enforcer" in error["message"]
    for secret in ("mask", "name", "s3.", "one"):
        assert secret not in error["message"].split()
