# SPDX-License-Identifier: Apache-2.0
"""Requests of the break-glass API, for the contract and security tests."""

from __future__ import annotations

import time
from typing import Any

import httpx

from tests.support.stack.world import Person, Table, World

BREAK_GLASS = "/management/v1/access/break-glass"


def holder(world: World, kind: str = "warehouse", id: str | None = None) -> Person:
    """Return a user that holds `break_glass` on the warehouse, or on another object, and nothing else."""
    person = world.stranger("oncall")
    world.grant("break_glass", person, kind, id or world.warehouse)
    return person


def on_table(world: World, table: Table) -> dict[str, Any]:
    """Return the object of an activation for a table."""
    return {"type": "table", "warehouse-id": world.warehouse, "table-id": table.uuid}


def start(
    person: Person, on: dict[str, Any], *privileges: str, minutes: int = 15, reason: str = "outage", **more: Any
) -> httpx.Response:
    """Request an activation of privileges, `select` by default; return the response."""
    body = {"object": on, "privileges": list(privileges or ("select",)), "minutes": minutes, "reason": reason}
    return person.post(BREAK_GLASS, body | {name.replace("_", "-"): value for name, value in more.items()})


def started(person: Person, on: dict[str, Any], *privileges: str, **more: Any) -> str:
    """Activate; return the id."""
    made = start(person, on, *privileges, **more)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def change(person: Person, id: str, action: str, body: dict[str, Any] | None = None) -> httpx.Response:
    """Send an action on an activation: confirm, end or review."""
    if action == "review":
        return person.post(f"{BREAK_GLASS}/{id}/review", body or {"finding": "justified"})
    return person.send("POST", f"{BREAK_GLASS}/{id}/{action}")


def listed(person: Person, status: str | None = None) -> dict[str, dict[str, Any]]:
    """Return the activations in the person's list by id."""
    found: dict[str, dict[str, Any]] = {}
    query: dict[str, str] = {} if status is None else {"status": status}
    while True:
        answer = person.get(BREAK_GLASS, params=query)
        assert answer.status_code == 200, answer.text
        found |= {each["id"]: each for each in answer.json()["activations"]}
        token = answer.json().get("next-page-token")
        if token is None:
            return found
        query["pageToken"] = token


def expire(world: World, id: str) -> None:
    """Let an activation and its grants expire now."""
    world.sql(
        "update break_glass_activations set ends_at = clock_timestamp(), latest_end = clock_timestamp() "
        "where id = $1::text::uuid",
        id,
    )


def audited(world: World, answer: httpx.Response) -> tuple[str, str | None]:
    """Return (the outcome, the activation) that the audit record of a request names.

    The record is written after the response.
    """
    query = (
        "select convert_from(record, 'UTF8')::jsonb -> 'decisions' -> 0 ->> 'outcome', "
        "convert_from(record, 'UTF8')::jsonb -> 'detail' ->> 'break_glass' from audit_log where request_id = $1"
    )
    deadline = time.monotonic() + 30
    while not (rows := world.sql(query, answer.headers["x-request-id"])):
        assert time.monotonic() < deadline, "the request has no audit record"
        time.sleep(0.05)
    ((outcome, mark),) = rows
    return str(outcome), None if mark is None else str(mark)
