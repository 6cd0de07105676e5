# SPDX-License-Identifier: Apache-2.0
"""Roles: make, add members."""

from __future__ import annotations

from typing import Any

from tests.support.stack.world import Person, World, send_until_decided, unique

ROLE = "/management/v1/role"


def make(world: World, by: Person | None = None, **more: Any) -> dict[str, Any]:
    """Create a role in the default project."""
    body = {"name": unique("role"), **more}
    made = send_until_decided(lambda: (by or world.admin).post(ROLE, body))
    assert made.status_code == 201, made.text
    role: dict[str, Any] = made.json()
    return role


def add(world: World, role: dict[str, Any], type: str, id: str, by: Person | None = None) -> Any:
    body = {"members": [{"type": type, "id": id}]}
    return send_until_decided(lambda: (by or world.admin).post(f"{ROLE}/{role['id']}/members", body))
