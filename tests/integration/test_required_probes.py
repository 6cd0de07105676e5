# SPDX-License-Identifier: Apache-2.0
"""A gateway with the default settings: an engine with `enforcer` is not trusted before its probe passed."""

from __future__ import annotations

import pytest

from gateway.embedded.ready import Ready
from tests.contract.columns import give, wide
from tests.contract.exchanging import acting
from tests.contract.test_engine_probes import opened, posted, shown, state
from tests.contract.world import World
from tests.integration.kills import Killable

pytestmark = pytest.mark.servers


def test_engine_is_trusted_from_its_passed_probe_until_its_end_or_while_it_is_warned(
    killed_stack: Ready, gateway: Killable
) -> None:
    gateway.kill()
    gateway.start(ENGINE_PROBES__REQUIRED="true", ENGINE_PROBES__VALID_DAYS="2")
    world = World(killed_stack)
    try:
        namespace = world.namespace()
        table = wide(world, namespace)
        for privilege in ("delegate", "enforcer"):
            world.grant(privilege, world.etl, "warehouse", world.warehouse)
        assert give(world, table, "name", world.carol).status_code == 204
        carol = acting(world, world.etl, world.carol)
        assert carol.get(table.path).status_code == 403, "the engine was never probed"
        challenge = opened(world, world.etl)
        assert posted(world, challenge, shown(challenge)).json()["trusted"] is True
        assert carol.get(table.path).status_code == 200
        [row] = world.sql("select valid_until - probed_at as time from engine_probes")
        assert row["time"].total_seconds() == pytest.approx(2 * 86_400, abs=1)
        world.sql("update engine_probes set valid_until = clock_timestamp()")
        assert carol.get(table.path).status_code == 403, "the result is too old"
        assert state(world, world.etl)["trusted"] is False
        world.sql("update engine_probes set warn_until = clock_timestamp() + interval '1 day'")
        assert carol.get(table.path).status_code == 200
        assert state(world, world.etl)["warned"] is True
        posted(world, opened(world, world.etl), "")
        assert carol.get(table.path).status_code == 403, "a failed probe ends the warning time"
    finally:
        world.close()
