# SPDX-License-Identifier: Apache-2.0
"""The list of live credentials of a table."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.stack.world import Person, Table, World


def own(person: Person, **query: str) -> list[dict[str, Any]]:
    """Return the live credentials of the person in its project, or of another principal."""
    return entries(person.get("/management/v1/live-credentials", params=query))


def entries(answer: httpx.Response) -> list[dict[str, Any]]:
    """Return the entries of a page that is the only one."""
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"live-credentials"}, answer.text
    found: list[dict[str, Any]] = answer.json()["live-credentials"]
    return found


def credentials(person: Person, path: str) -> dict[str, str]:
    """Return the properties of newly requested credentials."""
    answer = person.get(f"{path}/credentials")
    assert answer.status_code == 200, answer.text
    [only] = answer.json()["storage-credentials"]
    config: dict[str, str] = only["config"]
    return config


def reader(world: World, table: Table) -> Person:
    """Return a new user that may read the table and has no other right."""
    person = world.stranger()
    world.grant("select", person, "table", table.uuid)
    return person
