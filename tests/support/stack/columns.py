# SPDX-License-Identifier: Apache-2.0
"""Helpers that grant single columns and check access to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpx

from tests.support.stack.world import Person, Table, World, send_until_decided

BATCH = "/management/v1/action/batch-check"
#: Field ids of a table from `wide`: 1 id, 2 name, 3 card (required), 4 address (a struct with the field street).
WIDE: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "name", "type": "string", "required": False},
        {"id": 3, "name": "card", "type": "string", "required": True},
        {
            "id": 4,
            "name": "address",
            "required": False,
            "type": {
                "type": "struct",
                "fields": [{"id": 5, "name": "street", "type": "string", "required": False}],
            },
        },
    ],
}


def wide(world: World, namespace: str, **more: Any) -> Table:
    """Create a table of four columns, one of them required and one nested."""
    return world.table(namespace, **{"schema": WIDE, **more})


def evolve(world: World, table: Table, fields: list[dict[str, Any]], last: int) -> None:
    """Set another current schema of a table; `last` is the highest field id that it ever had."""
    schema = {"type": "struct", "fields": fields}
    updates = (
        {"action": "add-schema", "schema": schema, "last-column-id": last},
        {"action": "set-current-schema", "schema-id": -1},
    )
    done = send_until_decided(lambda: world.commit(world.admin, table.path, *updates))
    assert done.status_code == 200, done.text


def assignments_path(world: World, table: Table | str, column: str) -> str:
    """Return the path of the assignments of a column."""
    id = table if isinstance(table, str) else table.uuid
    rights = f"/management/v1/permissions/warehouse/{world.warehouse}/table/{id}"
    return f"{rights}/columns/{quote(column, safe='')}/assignments"


def grants_path(world: World, table: Table | str, column: str | None = None) -> str:
    """Return the path of a column's grants; without a column, of the grants on all columns of the table."""
    id = table if isinstance(table, str) else table.uuid
    columns = f"/management/v1/warehouse/{world.warehouse}/table/{id}/columns"
    return f"{columns}/grants" if column is None else f"{columns}/{quote(column, safe='')}/grants"


def give(
    world: World, table: Table | str, column: str, *to: Person, by: Person | None = None, **more: Any
) -> httpx.Response:
    """Grant `select` on a column; `more` holds the reason and the expiry."""
    writes = [{"privilege": "select", "principal": {"user": each.id}, **more} for each in to]
    return send_until_decided(lambda: (by or world.admin).post(grants_path(world, table, column), {"writes": writes}))


def expiring_grant(at: datetime, **more: Any) -> dict[str, Any]:
    """Return what `give` takes for a grant that expires at a point in time."""
    return {"expires-at": at.isoformat(), **more}


def take(world: World, table: Table | str, column: str, *of: Person, by: Person | None = None) -> httpx.Response:
    """Revoke `select` on a column."""
    deletes = [{"privilege": "select", "principal": {"user": each.id}} for each in of]
    return send_until_decided(lambda: (by or world.admin).post(grants_path(world, table, column), {"deletes": deletes}))


def readable(person: Person, world: World, *tables: Table, **about: Any) -> list[Any]:
    """Return the `read_columns` result of each table: True for all columns, False for none, or the names of some."""
    checks = [
        {
            "operation": {"table": {"warehouse-id": world.warehouse, "table-id": each.uuid, "action": "read_columns"}},
            **({"identity": about["identity"]} if "identity" in about else {}),
        }
        for each in tables
    ]
    more = {"delegated": True} if about.get("delegated") else {}
    answer = person.post(BATCH, {"checks": checks, **more})
    assert answer.status_code == 200, answer.text
    return [each.get("columns", True) if each["allowed"] else False for each in answer.json()["results"]]
