# SPDX-License-Identifier: Apache-2.0
"""A revocation that OpenFGA has not received yet ends the cached decisions, which live for fractions of a second."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support.processes import suspended
from tests.support.stack.world import Person, Table, World, unique

pytestmark = [pytest.mark.chaos, pytest.mark.slow]


def _by_grant(world: World, table: Table) -> tuple[str, str]:
    world.grant("select", world.analyst, "table", table.uuid)
    return world.grants_path("table", table.uuid), "select"


def _by_membership(world: World, table: Table) -> tuple[str, str]:
    role = world.admin.post("/management/v1/role", {"name": unique("role")}).json()["id"]
    world.grant("assignee", world.analyst, "role", role)
    given = world.admin.post(world.grants_path("table", table.uuid), {"writes": [{"type": "select", "role": role}]})
    assert given.status_code == 204, given.text
    return world.grants_path("role", role), "assignee"


@pytest.mark.threat("LG-DIS-05")
@pytest.mark.parametrize("way", [_by_grant, _by_membership])
def test_pending_revocation_ends_cached_decisions_while_openfga_is_stopped(
    world: World, ns: str, way: Callable[[World, Table], tuple[str, str]]
) -> None:
    """The decisions of the administrator and of the reader are cached in every worker. The revocation commits its row
    and cannot be delivered. No later request gets credentials by the cached decision.
    """
    table = world.table(ns)
    path, privilege = way(world, table)
    entry = {"type": privilege, "user": world.analyst.id}
    # A delivery that other tests left would move a revision after the decisions are cached.
    world.delivered()
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            # New connections reach all workers. This grant changes no revision.
            assert set(pool.map(lambda _: _fresh(world.analyst, "GET", table.path), range(24))) == {200}
            warm = set(pool.map(lambda _: _fresh(world.admin, "POST", path, {"writes": [entry]}), range(8)))
            assert warm == {409}, "the grant exists, and the request is decided before that is known"
        with suspended(world.ready.pids["openfga"]):
            assert _fresh(world.analyst, "GET", table.path) == 200, "no decision is cached, so the test proves nothing"
            assert _fresh(world.admin, "POST", path, {"deletes": [entry]}) == 503
            held = "select 1 from grants where principal_id = $1 and privilege = $2 and object_id = $3"
            assert world.sql(held, world.analyst.id, privilege, _object_id(world, path, table)) == []
            assert set(pool.map(lambda _: _fresh(world.analyst, "GET", table.path), range(8))) == {503}
    # Until the delivery the rows refuse the reader, so 404 alone does not prove it.
    world.delivered()
    assert _fresh(world.analyst, "GET", table.path) == 404


def _object_id(world: World, path: str, table: Table) -> str:
    if "/role/" in path:
        return path.split("/role/")[1].split("/")[0]
    return str(world.sql("select id::text from tables where table_uuid = $1::text::uuid", table.uuid)[0]["id"])


def _fresh(person: Person, method: str, path: str, body: object = None) -> int:
    """Send a request over a new connection; return its status."""
    headers = {"Authorization": f"Bearer {person.token}", "X-Iceberg-Access-Delegation": "vended-credentials"}
    url = f"{person.http.base_url}".rstrip("/") + path
    return httpx.request(method, url, json=body, headers=headers, timeout=60, trust_env=False).status_code
