# SPDX-License-Identifier: Apache-2.0
"""Moves of namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx

from tests.support.stack.world import SCHEMA, Person, World, send_until_decided, unique


def make(world: World, *levels: str) -> str:
    """Create a namespace by its whole path; return its id."""
    made = world.admin.post(f"{world.root}/namespaces", {"namespace": levels})
    assert made.status_code == 200, made.text
    return str(made.json()["properties"]["namespace_id"])


def move(by: Person, world: World, id: str, destination: Sequence[str], **more: Any) -> httpx.Response:
    """Move a namespace to a new path, given with all its levels."""
    path = f"/management/v1/warehouse/{world.warehouse}/namespace/{id}/move"
    return by.post(path, {"destination": list(destination), **more})


def at(world: World, *levels: str) -> str:
    """Return the path from which a namespace is loaded."""
    return f"{world.root}/namespaces/{'%1F'.join(levels)}"


def new_table(world: World, *levels: str, by: Person | None = None) -> str:
    """Create a table in a namespace; return its path."""
    name = unique("t")
    made = (by or world.admin).post(f"{at(world, *levels)}/tables", {"name": name, "schema": SCHEMA})
    assert made.status_code == 200, made.text
    return f"{at(world, *levels)}/tables/{name}"


def move_namespace(world: World, name: str, to: list[str]) -> None:
    path = f"/management/v1/warehouse/{world.warehouse}/namespace/{world.namespace_id(name)}/move"
    done = send_until_decided(lambda: world.admin.post(path, {"destination": to}))
    assert done.status_code in (200, 204), done.text
