# SPDX-License-Identifier: Apache-2.0
"""Registration and adoption of metadata files."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.stack.world import Person, Table, World, unique

ADOPT = {"X-Lakegate-Adopt": "true"}


def register(by: Person, world: World, ns: str, name: str, location: str, **more: Any) -> httpx.Response:
    """Register a table."""
    return by.post(f"{world.root}/namespaces/{ns}/register", {"name": name, "metadata-location": location, **more})


def adopt(by: Person, world: World, ns: str, name: str, location: str, **more: Any) -> httpx.Response:
    """Register a table from a file that no record of the catalog names."""
    body = {"name": name, "metadata-location": location, **more}
    return by.post(f"{world.root}/namespaces/{ns}/register", body, headers=ADOPT)


def adopt_view(by: Person, world: World, ns: str, name: str, location: str) -> httpx.Response:
    """Register a view from a file that no record of the catalog names."""
    body = {"name": name, "metadata-location": location}
    return by.post(f"{world.root}/namespaces/{ns}/register-view", body, headers=ADOPT)


def released(world: World, ns: str, **more: Any) -> Table:
    """Create a table and unregister it; its files remain."""
    table = world.table(ns, **more)
    assert world.admin.post(f"{table.path}/unregister").status_code == 200
    return table


def foreign(world: World, ns: str) -> tuple[str, dict[str, Any]]:
    """Return a fresh location below the base, and valid metadata of a table there."""
    table = released(world, ns)
    location = f"{table.location.rsplit('/', 1)[0]}/{unique('foreign')}"
    return location, {**table.answer["metadata"], "location": location}
