# SPDX-License-Identifier: Apache-2.0
"""Generic tables: paths, creation, rename."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.stack.world import Person, World, unique


def at(world: World, ns: str, name: str = "") -> str:
    """Return the path of the generic tables of a namespace, or of one of them."""
    path = f"/lakekeeper/v1/{world.warehouse}/namespaces/{ns}/generic-tables"
    return f"{path}/{name}" if name else path


def create(world: World, ns: str, name: str | None = None, *, by: Person | None = None, **more: Any) -> httpx.Response:
    """Return a request that creates a generic table."""
    return (by or world.admin).post(at(world, ns), {"name": name or unique("g"), "format": "lance", **more})


def make(world: World, ns: str, name: str | None = None, **more: Any) -> dict[str, Any]:
    """Create a generic table; return name, path, id and response."""
    answer = create(world, ns, name, **more)
    assert answer.status_code == 200, answer.text
    name = answer.json()["table"]["name"]
    [row] = world.sql("select id::text from tables where name = $1 and kind = 'generic_table'", name)
    return {"name": name, "path": at(world, ns, name), "id": row["id"], **answer.json()}


def key_in(world: World, made: dict[str, Any], name: str = "data/file") -> str:
    """Return an object key below the location of a generic table."""
    location: str = made["table"]["base-location"]
    return f"{location.removeprefix(f's3://{world.bucket}/').rstrip('/')}/{name}"


def rename(by: Person, world: World, source: tuple[str, str], destination: tuple[str, str]) -> httpx.Response:
    """Rename a generic table from (namespace, name) to (namespace, name)."""
    body = {
        "source": {"namespace": [source[0]], "name": source[1]},
        "destination": {"namespace": [destination[0]], "name": destination[1]},
    }
    return by.post(f"/lakekeeper/v1/{world.warehouse}/generic-tables/rename", body)
