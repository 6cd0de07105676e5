# SPDX-License-Identifier: Apache-2.0
"""Guardrails that depend on roles."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from tests.support.stack.world import POLICIES_APPLY_S, Person, World, error_of, send_until_decided, unique

_NEVER = {"timezone": "UTC", "weekdays": [], "from": "08:00", "until": "18:00"}


def make_role(world: World) -> str:
    """Create a role without members: its creator would be one as its owner, so the ownership is revoked."""
    body = {"name": unique("role")}
    made = send_until_decided(lambda: world.admin.post("/management/v1/role", body))
    assert made.status_code == 201, made.text
    world.revoke("ownership", world.admin, "role", str(made.json()["id"]))
    return str(made.json()["id"])


def put_in(world: World, role: str, kind: str, member: str) -> None:
    """Make a user or another role a member of the role."""
    body = {"members": [{"type": kind, "id": member}]}
    done = send_until_decided(lambda: world.admin.post(f"/management/v1/role/{role}/members", body))
    assert done.status_code == 204, done.text


@contextmanager
def contractors(world: World, *roles: str) -> Iterator[None]:
    """Make these roles contractors without working hours until the block ends."""
    url = f"{world.ready.opa.url}/v1/data/policy_data/contractors"
    headers = {"Authorization": f"Bearer {world.ready.opa.token}"}
    before = httpx.get(url, headers=headers, trust_env=False, timeout=60).raise_for_status().json()["result"]
    now = {"users": [], "roles": list(roles), "hours": _NEVER}
    httpx.put(url, headers=headers, json=now, trust_env=False, timeout=60).raise_for_status()
    time.sleep(POLICIES_APPLY_S)
    try:
        yield
    finally:
        httpx.put(url, headers=headers, json=before, trust_env=False, timeout=60).raise_for_status()
        time.sleep(POLICIES_APPLY_S)


def outcome(person: Person, path: str) -> tuple[int, bool]:
    """Return (status, True if the message holds the policy's reason)."""
    answer = person.get(path)
    return answer.status_code, answer.status_code == 403 and "contractor_outside_hours" in error_of(answer)["message"]
