# SPDX-License-Identifier: Apache-2.0
"""Views that run with the rights of their owner, and loads through them."""

from __future__ import annotations

from urllib.parse import quote

import httpx

from tests.support.stack.exchanging import acting
from tests.support.stack.world import Person, Table, World

OWNER = "trino.run-as-owner"


def through(engine: Person, world: World, user: Person) -> Person:
    """Return the user at the engine's gateway, with a token that the engine exchanged."""
    token = acting(world, world.etl, user).token
    return Person(f"etl for {user.name}", user.id, token, str(engine.http.base_url))


def referenced(*views: tuple[str, str]) -> dict[str, str]:
    """Return the `referenced-by` parameter, encoded for a URL."""
    return {"query": "referenced-by=" + ",".join(quote(f"{namespace}\x1f{name}", safe="") for namespace, name in views)}


def load(person: Person, table: Table, *views: tuple[str, str], at: str = "") -> httpx.Response:
    """Load the table through these views."""
    return person.get(f"{table.path}{at}?{referenced(*views)['query']}")


def view_id(world: World, name: str) -> str:
    """Return the id of the view in the grants."""
    return str(world.sql("select id::text as id from tables where kind = 'view' and name = $1", name)[0]["id"])


def grant_view(world: World, name: str, to: Person, privilege: str = "select") -> None:
    world.grant(privilege, to, "view", view_id(world, name))
