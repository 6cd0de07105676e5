# SPDX-License-Identifier: Apache-2.0
"""Requests of users that assume a role."""

from __future__ import annotations

from typing import Any

from tests.support.stack.world import World


def acting(role: dict[str, Any]) -> dict[str, str]:
    """Return the header."""
    return {"x-assume-role": str(role["id"])}


def give(world: World, role: dict[str, Any], privilege: str, kind: str, id: str) -> None:
    """Grant a privilege to the role."""
    writes = {"writes": [{"type": privilege, "role": role["id"]}]}
    assert world.admin.post(world.grants_path(kind, id), writes).status_code == 204
