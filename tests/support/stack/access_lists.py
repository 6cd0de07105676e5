# SPDX-License-Identifier: Apache-2.0
"""Questions for the lists of access: who can, and what a principal can."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.stack.world import Person, Table, World, send_until_decided

WHO_CAN = "/management/v1/access/who-can"
WHAT_CAN = "/management/v1/access/what-can"

Row = dict[str, Any]


def in_table(world: World, table: Table) -> dict[str, Any]:
    """Return a table as the object of a question."""
    return {"table": {"warehouse-id": world.warehouse, "table-id": table.uuid}}


def ask(person: Person, object: dict[str, Any], action: str, **more: Any) -> httpx.Response:
    """Ask who can take an action. Names of further members have underscores."""
    body = {"action": action, "object": object, **{key.replace("_", "-"): value for key, value in more.items()}}
    return person.post(WHO_CAN, body)


def all_rows(person: Person, object: dict[str, Any], action: str, **more: Any) -> list[Row]:
    """Return the rows of all pages."""
    rows: list[Row] = []
    while True:
        answer = ask(person, object, action, **more)
        assert answer.status_code == 200, answer.text
        rows += answer.json()["rows"]
        if "next-page-token" not in answer.json():
            return rows
        more["page_token"] = answer.json()["next-page-token"]


def grant(world: World, privilege: str, kind: str, id: str, *, expect: int = 204, **principal: str) -> None:
    """Grant a privilege to `user` or `role` with the grants API. `kind` is warehouse, namespace, table or role."""
    paths = {
        "warehouse": f"warehouse/{world.warehouse}",
        "role": f"role/{id}",
        "project": "project",
    }
    path = paths.get(kind, f"warehouse/{world.warehouse}/{kind}/{id}")
    body = {"writes": [{"privilege": privilege, "principal": principal}]}
    done = send_until_decided(lambda: world.admin.post(f"/management/v1/{path}/grants", body), unless=expect)
    assert done.status_code == expect, done.text


def row_of(rows: list[Row], **principal: str) -> Row:
    """Return the only row about a principal."""
    (row,) = [each for each in rows if each["principal"] == principal]
    return row


def users_of(person: Person, object: dict[str, Any], action: str, **more: Any) -> set[str]:
    """Return the users of the rows, with the members of all roles."""
    found: set[str] = set()
    left: list[str | None] = [None]
    seen: set[str] = set()
    while left:
        role = left.pop()
        for row in all_rows(person, object, action, **more, **({} if role is None else {"expand": role})):
            if "user" in row["principal"]:
                found.add(row["principal"]["user"])
            elif row.get("expandable") and row["principal"]["role"] not in seen:
                seen.add(row["principal"]["role"])
                left.append(row["principal"]["role"])
    return found


def what_can(person: Person, **members: Any) -> list[Row]:
    """Return what the caller, or the `principal`, can do: the rows of all pages."""
    rows: list[Row] = []
    body = {key.replace("_", "-"): value for key, value in members.items()}
    while True:
        answer = person.post(WHAT_CAN, body)
        assert answer.status_code == 200, answer.text
        rows += answer.json()["rows"]
        if "next-page-token" not in answer.json():
            return rows
        body["page-token"] = answer.json()["next-page-token"]


def actions_on(rows: list[Row], **resource: str) -> set[str]:
    """Return the actions of the row about a resource, empty without a row."""
    found = [each for each in rows if resource.items() <= each["resource"].items()]
    return {action for row in found for held in row["held"] for action in held["actions"]}
