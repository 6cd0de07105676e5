# SPDX-License-Identifier: Apache-2.0
"""Requests of policy enforcement points (AuthZEN)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.stack.world import Person, Table, World

EVALUATION, EVALUATIONS = "/access/v1/evaluation", "/access/v1/evaluations"
SEARCH = "/access/v1/search/"


def subject(person: Person | str, **properties: object) -> dict[str, Any]:
    """Return a user as a subject."""
    id = person if isinstance(person, str) else person.id
    return {"type": "user", "id": id} | ({"properties": properties} if properties else {})


def resource(world: World, table: Table, **properties: object) -> dict[str, Any]:
    """Return a table as a resource, under the gateway's own names."""
    id = f"{world.warehouse}/{table.uuid}"
    return {"type": "table", "id": id} | ({"properties": properties} if properties else {})


def action(name: str, **properties: object) -> dict[str, Any]:
    """Return an action."""
    return {"name": name} | ({"properties": properties} if properties else {})


def evaluate(asker: Person, about: dict[str, Any], name: str, on: dict[str, Any], **context: object) -> bool:
    """Return the decision on one access evaluation."""
    body: dict[str, Any] = {"subject": about, "action": {"name": name}, "resource": on}
    answer = asker.post(EVALUATION, body | ({"context": context} if context else {}))
    assert answer.status_code == 200, answer.text
    decision: bool = answer.json()["decision"]
    return decision


def evaluate_all(asker: Person, evaluations: Sequence[dict[str, Any]], **more: Any) -> list[bool]:
    """Return the decisions on several access evaluations."""
    answer = asker.post(EVALUATIONS, {"evaluations": evaluations, **more})
    assert answer.status_code == 200, answer.text
    return [each["decision"] for each in answer.json()["evaluations"]]


def search(asker: Person, kind: str, *, limit: int | None = None, **body: Any) -> list[str]:
    """Return the ids, or the names of actions, on all pages of a search, in order."""
    found: list[str] = []
    page: dict[str, Any] = {} if limit is None else {"limit": limit}
    while True:
        answer = asker.post(SEARCH + kind, {**body, "page": page})
        assert answer.status_code == 200, answer.text
        results = answer.json()["results"]
        assert limit is None or len(results) <= limit
        found += [each["name"] if kind == "action" else each["id"] for each in results]
        page = {**page, "token": answer.json()["page"]["next_token"]}
        if not page["token"]:
            return found
