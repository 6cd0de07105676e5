# SPDX-License-Identifier: Apache-2.0
"""Grants whose grantors could not give them now: `lakegate migrate --check`, and the warnings after an upgrade."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.db.engine.database import Database
from gateway.features.principals import former_grantors
from gateway.features.principals.former_grantors import FormerGrantors
from gateway.fga.client import FgaClient
from gateway.fga.relationships import FgaRelationships
from gateway.settings import Secret
from gateway.settings.postgres import asyncpg_url
from tests.support.stack.own_model import known, lakegate
from tests.support.stack.world import Person, World


@pytest.fixture
def grants(world: World, ns: str) -> dict[str, Person]:
    """Return the holders of `enforcer` on a namespace, by the right of the grantor."""
    space, holders = world.namespace_id(ns), {}
    for right, kind, on in (
        ("ownership", "warehouse", world.warehouse),
        ("manage_grants", "namespace", space),
        ("security_admin", "project", world.project),
    ):
        grantor, holders[right] = world.stranger(right.replace("_", "-")), world.stranger("engine")
        world.grant(right, grantor, kind, on)
        world.grant("enforcer", holders[right], "namespace", space)
        # An owner could grant it before model 1.10.
        changed = "update grants set granted_by = $1 where principal_id = $2 and privilege = 'enforcer'"
        world.sql(changed, grantor.id, holders[right].id)
    return holders


def listed(text: str, grants: Mapping[str, Person]) -> list[str]:
    return [right for right, holder in grants.items() if f"to user {holder.id}, by " in text]


def test_check_of_a_migration_lists_grants_of_former_grantors(world: World, grants: dict[str, Person]) -> None:
    done = lakegate(world.ready, "migrate", "--check")
    assert done.returncode == 0, done.stderr
    assert "the database has the schema of this version" in done.stdout
    assert listed(done.stdout, grants) == ["ownership", "manage_grants"]


def warnings(world: World) -> Sequence[Mapping[str, Any]]:
    """Return the events that a process logs on one day."""

    async def run() -> None:
        ready = world.ready
        database = Database(asyncpg_url(Secret(ready.postgres)), pool_size=2, acquire_timeout=10)
        store = world.sql("select store_id from relationship_models limit 1")[0]["store_id"]
        client = FgaClient(ready.openfga.url, ready.openfga.token, store, known_model, timeout_s=10)
        try:
            await FormerGrantors(database=database, relationships=FgaRelationships(client)).warn()
        finally:
            await client.aclose()
            await database.close()

    known_model = known(world.ready)[0]
    with capture_logs() as events:
        asyncio.run(run())
    return [each for each in events if each["event"] == "former_grants.found"]


def test_gateway_warns_of_grants_of_former_grantors_for_thirty_days(
    world: World, grants: dict[str, Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert listed("\n".join(each["grant"] for each in warnings(world)), grants) == ["ownership", "manage_grants"]
    monkeypatch.setattr(former_grantors, "WARNED_DAYS", 0.0)
    assert warnings(world) == []
