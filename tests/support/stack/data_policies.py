# SPDX-License-Identifier: Apache-2.0
"""Data policies: make, change, bind to a new table, read the revision."""

from __future__ import annotations

from typing import Any

from tests.support.stack.world import Person, Table, World, send_until_decided, unique

POLICY = "/management/v1/data-policy"
MASK: dict[str, Any] = {"kind": "mask", "action": "mask-alphanum", "columns": [{"name": "name"}]}
FILTER: dict[str, Any] = {
    "kind": "row-filter",
    "test": {
        "type": "or",
        "operands": [
            {"type": "in", "column": {"name": "card"}, "values": ["a", "b"]},
            {"type": "compare", "operator": "eq", "column": {"name": "card"},
             "value": {"type": "attribute", "source": "mapping", "name": "cards"}},
        ],
    },
}  # fmt: skip


def make(world: World, definition: dict[str, Any] = MASK, *, by: Person | None = None, **more: Any) -> dict[str, Any]:
    """Create a data policy in the default project."""
    body = {"name": unique("policy"), "definition": definition, **more}
    made = send_until_decided(lambda: (by or world.admin).post(POLICY, body))
    assert made.status_code == 201, made.text
    policy: dict[str, Any] = made.json()
    return policy


def change(world: World, policy: dict[str, Any], by: Person | None = None, **body: Any) -> Any:
    """Bind and unbind."""
    return send_until_decided(lambda: (by or world.admin).post(f"{POLICY}/{policy['id']}/bindings", body))


def target(world: World, table: Table) -> dict[str, str]:
    """Return a table as a binding names it."""
    return {"type": "table", "id": table.uuid, "warehouse-id": world.warehouse}


def revision(world: World) -> Any:
    """Return the data policy revision of the warehouse."""
    return world.sql(f"select data_policy_revision as it from warehouses where id = '{world.warehouse}'")[0]["it"]


def loads(person: Person, table: Table) -> int:
    """Return the status of a load without an enforcer: 200 for a principal without restrictions, else 403."""
    return send_until_decided(lambda: person.get(table.path)).status_code
