# SPDX-License-Identifier: Apache-2.0
"""Warnings before the trust of engines ends, on the rows of a running gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

import pytest
from structlog.testing import capture_logs

from gateway.access.engine_probes import ProbeRules, Standing
from gateway.db.engine.database import Database
from gateway.features.engines.probe_expiry import ProbeExpiry
from gateway.settings import Secret
from gateway.settings.postgres import asyncpg_url
from tests.support.stack.engine_probes import opened, posted, shown
from tests.support.stack.roles import add, make
from tests.support.stack.world import World


class Counted:
    """Keeps the last numbers."""

    def __init__(self) -> None:
        self.by_standing: dict[Standing, int] = {}
        self.next_end = 0.0

    def trust_counted(self, by_standing: Mapping[Standing, int], next_end: float) -> None:
        self.by_standing, self.next_end = dict(by_standing), next_end


@pytest.fixture(autouse=True)
def unprobed(world: World) -> Iterator[None]:
    """Remove all probes and the engine's grants, before and after the test."""

    def clean() -> None:
        world.sql("delete from engine_probes")
        world.strip(world.etl)

    clean()
    yield
    clean()


def _count(world: World, times: int = 1) -> tuple[Counted, list[str]]:
    """Return (the numbers, the engines that were logged) of some counts in one process."""
    counted = Counted()

    async def run() -> None:
        database = Database(asyncpg_url(Secret(world.ready.postgres)), pool_size=2, acquire_timeout=10)
        try:
            expiry = ProbeExpiry(database=database, observer=counted, valid_days=7, rules=ProbeRules())
            for _ in range(times):
                await expiry.count()
        finally:
            await database.close()

    with capture_logs() as events:
        asyncio.run(run())
    return counted, [event["engine"] for event in events if event["event"] == "engine_probe.nearly_expired"]


def test_only_an_enforcer_is_counted_and_its_ending_trust_is_logged_once(world: World) -> None:
    challenge = opened(world, world.etl)
    assert posted(world, challenge, shown(challenge)).status_code == 200
    # The result of a probe by the gateway. `test_required_probes.py` runs one; a posted output gives no trust.
    world.sql(
        "update engine_probes set verdict = 'passed', probed_at = clock_timestamp(), "
        "valid_until = clock_timestamp() + interval '7 days'"
    )
    assert _count(world)[0].by_standing == {}, "an engine without `enforcer` must raise no alert"
    world.grant("enforcer", world.etl, "warehouse", world.warehouse)
    counted, logged = _count(world)
    assert (counted.by_standing, logged) == ({Standing.TRUSTED: 1}, [])
    world.sql("update engine_probes set valid_until = clock_timestamp() + interval '1 day'")
    counted, logged = _count(world, times=2)
    assert (counted.by_standing, logged) == ({Standing.EXPIRING: 1}, [world.etl.id])
    [row] = world.sql("select extract(epoch from valid_until)::float8 as at from engine_probes")
    assert counted.next_end == pytest.approx(row["at"])
    world.sql("update engine_probes set valid_until = clock_timestamp()")
    counted, logged = _count(world)
    assert (counted.by_standing, counted.next_end, logged) == ({Standing.EXPIRED: 1}, 0.0, [])


def test_an_engine_with_an_old_grant_by_a_role_is_warned(world: World) -> None:
    role = make(world)
    world.sql(
        "insert into engine_probes (engine, warehouse_id, warn_until) "
        "values ($1, $2::uuid, clock_timestamp() + interval '20 days')",
        world.etl.id,
        world.warehouse,
    )
    assert add(world, role, "user", world.etl.id).status_code == 204
    body = {"writes": [{"type": "enforcer", "role": role["id"]}]}
    assert world.admin.post(world.grants_path("warehouse", world.warehouse), body).status_code == 204
    assert _count(world)[0].by_standing == {Standing.WARNED: 1}
