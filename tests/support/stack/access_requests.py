# SPDX-License-Identifier: Apache-2.0
"""Requests of the access request API, for the contract and security tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx

from tests.support.stack.role_policies import make_role
from tests.support.stack.tags import attach, define, tags_path
from tests.support.stack.world import Person, Table, World

REQUESTS = "/management/v1/access/requests"


def on_table(world: World, table: Table) -> dict[str, Any]:
    """Return the object of a request for a table."""
    return {"type": "table", "warehouse-id": world.warehouse, "table-id": table.uuid}


def ask(
    person: Person, on: dict[str, Any], *privileges: str, reason: str = "quarterly report", **more: Any
) -> httpx.Response:
    """Send a request for privileges, `select` by default; return the response."""
    body = {"object": on, "privileges": list(privileges or ("select",)), "reason": reason}
    return person.post(REQUESTS, body | {name.replace("_", "-"): value for name, value in more.items()})


def asked(person: Person, on: dict[str, Any], *privileges: str, **more: Any) -> str:
    """Make a request; return its id."""
    made = ask(person, on, *privileges, **more)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def decide(person: Person, id: str, action: str, body: dict[str, Any] | None = None) -> httpx.Response:
    """Send an action on a request: approve, deny, withdraw, remind or end."""
    if action in ("approve", "deny"):
        return person.post(f"{REQUESTS}/{id}/{action}", body or ({"reason": "no need"} if action == "deny" else {}))
    return person.send("POST", f"{REQUESTS}/{id}/{action}")


def read(person: Person, id: str) -> dict[str, Any]:
    """Return a request."""
    answer = person.get(f"{REQUESTS}/{id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def listed(person: Person, **query: Any) -> list[str]:
    """Return the ids of all requests in the person's list."""
    ids: list[str] = []
    token = None
    while True:
        answer = person.get(REQUESTS, params=query | ({} if token is None else {"pageToken": token}))
        assert answer.status_code == 200, answer.text
        ids += [each["id"] for each in answer.json()["access-requests"]]
        token = answer.json().get("next-page-token")
        if token is None:
            return ids


def may_read(person: Person, world: World, table: Table) -> bool:
    """Return True if the person may read the data of the table."""
    on = {"warehouse-id": world.warehouse, "table-id": table.uuid, "action": "read_data"}
    answer = person.post("/management/v1/permissions/check", {"operation": {"table": on}})
    assert answer.status_code == 200, answer.text
    return bool(answer.json()["allowed"])


def ask_together(person: Person, *items: tuple[dict[str, Any], Sequence[str]], **more: Any) -> httpx.Response:
    """Send a request for several objects, each with its privileges; return the response."""
    body = {
        "items": [{"object": on, "privileges": list(privileges)} for on, privileges in items],
        "reason": "quarterly report",
    }
    return person.post(REQUESTS, body | more)


def asked_together(person: Person, world: World, *tables: Table) -> tuple[str, list[str]]:
    """Request `select` on tables together; return (the id of the bundle, the ids of its requests in that order)."""
    made = ask_together(person, *((on_table(world, table), ["select"]) for table in tables))
    assert made.status_code == 201, made.text
    return str(made.json()["bundle"]), [str(each["id"]) for each in made.json()["items"]]


def requestable(world: World, table: Table, via: str) -> Person:
    """Return a user that may request access to the table and sees neither it nor its containers."""
    person = world.stranger("requester")
    match via:
        case "warehouse":
            world.grant("requester", person, "warehouse", world.warehouse)
        case "namespace":
            world.grant("requester", person, "namespace", world.namespace_id(table.namespace))
        case "role":
            role = make_role(world)
            path = f"/management/v1/warehouse/{world.warehouse}/namespace/{world.namespace_id(table.namespace)}/grants"
            entry = {"privilege": "requester", "principal": {"role": role}}
            assert world.admin.post(path, {"writes": [entry]}).status_code == 204
            world.grant("assignee", person, "role", role)
        case _:
            tag = define(world)
            assert attach(world, tag, tags_path(world, "table", table.uuid)).is_success
            path = f"/management/v1/tag-definition/{tag['id']}/grants"
            entry = {"privilege": "requester", "principal": {"user": person.id}}
            made = world.admin.post(path, {"writes": [entry]})
            assert made.status_code == 204, made.text
    return person


def holder(world: World, privilege: str, *tables: Table) -> Person:
    """Create a user with a privilege on each of the tables."""
    person = world.stranger()
    for table in tables:
        world.grant(privilege, person, "table", table.uuid)
    return person
