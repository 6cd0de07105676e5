# SPDX-License-Identifier: Apache-2.0
"""Views: bodies, creation, replacement."""

from __future__ import annotations

from typing import Any

from tests.support.stack.world import SCHEMA, World, send_until_decided, unique

_VIEW_SCHEMA = {"schema-id": 0, **SCHEMA}


def version(sql: str, *, dialect: str = "spark", number: int = 1, schema: int = 0, **more: Any) -> dict[str, Any]:
    """Return a view version with one representation."""
    return {
        "version-id": number,
        "timestamp-ms": 1_700_000_000_000 + number,
        "schema-id": schema,
        "summary": {"operation": "create" if number == 1 else "replace", "engine-name": "test"},
        "representations": [{"type": "sql", "sql": sql, "dialect": dialect}],
        "default-namespace": ["ns"],
        **more,
    }


def body(name: str, sql: str = "select 1", **more: Any) -> dict[str, Any]:
    """Return the body of a request that creates a view."""
    return {"name": name, "schema": _VIEW_SCHEMA, "view-version": version(sql), "properties": {}, **more}


def create(world: World, ns: str, name: str | None = None, **more: Any) -> dict[str, Any]:
    """Create a view; return the response with the view's name and path."""
    name = name or unique("v")
    made = send_until_decided(lambda: world.admin.post(f"{world.root}/namespaces/{ns}/views", body(name, **more)))
    assert made.status_code == 200, made.text
    return {**made.json(), "name": name, "path": f"{world.root}/namespaces/{ns}/views/{name}"}


def replace(uuid: str, sql: str, **more: Any) -> dict[str, Any]:
    """Return a commit that replaces the definition, based on version 1."""
    return {
        "requirements": [{"type": "assert-view-uuid", "uuid": uuid}],
        "updates": [
            {"action": "add-view-version", "view-version": version(sql, number=2, **more)},
            {"action": "set-current-view-version", "view-version-id": -1},
        ],
    }


def sql_of(metadata: dict[str, Any]) -> str:
    """Return the SQL of the current version."""
    sql: str = next(
        each["representations"][0]["sql"]
        for each in metadata["versions"]
        if each["version-id"] == metadata["current-version-id"]
    )
    return sql
