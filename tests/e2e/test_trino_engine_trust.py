# SPDX-License-Identifier: Apache-2.0
"""Trust in a real Trino by what the gateway reads through it, with the default settings of probes.

The gateway needs a passed probe of each engine. Both Trinos have the same identity, catalog and gateway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.engines import canary
from gateway.cli.management import Management, Warehouse
from tests.integration.conftest import _up
from tests.support.engines.trino import Refused, Trino, trino_server
from tests.support.engines.trino_calls import pytestmark
from tests.support.load.kills import Killable
from tests.support.stack.columns import give, wide
from tests.support.stack.engine_probes import opened, passed, path_of
from tests.support.stack.exchanging import acting
from tests.support.stack.trino_bridge import Bridge, bridged
from tests.support.stack.world import Person, Table, World

__all__ = ["pytestmark"]

NO_ACCESS_CONTROL = "access-control.name=allow-all\n"


@dataclass(frozen=True)
class Site:
    """A gateway that needs probes, the bridge, and a table of which carol may read one column."""

    world: World
    gateway: Killable
    bridge: Bridge
    table: Table
    name: str

    @property
    def engine(self) -> Person:
        return self.world.alice

    def is_trusted(self) -> bool:
        """Return True if Trino's identity gets the restricted table for carol."""
        return acting(self.world, self.engine, self.world.carol).get(self.table.path).status_code == 200

    def run_probe(self, trino: Trino) -> dict[str, Any]:
        """Restart the gateway with the address of this Trino, and probe it as the steward. Return the answer."""
        world = self.world
        restart(
            self.gateway,
            MAX_REQUEST_TIME="240",  # a busy machine
            ENGINE_PROBES__ENGINES__BI__IDENTITY=self.engine.id,
            ENGINE_PROBES__ENGINES__BI__URL=trino.url,
            ENGINE_PROBES__ENGINES__BI__CATALOG="ice",
            ENGINE_PROBES__ENGINES__BI__USER=world.carol.id,
            ENGINE_PROBES__ENGINES__BI__CONTROL=world.bob.id,
        )
        challenge = opened(world, self.engine, by=world.steward)
        warehouse = Warehouse(world.warehouse, str(world.ready.warehouse))
        with canary(Management(world.base, world.steward.token), warehouse, challenge, world.carol.id):
            answer = world.steward.post(f"{path_of(world)}/{challenge['id']}/run", {}, timeout=300)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


def restart(gateway: Killable, **settings: str) -> None:
    """Restart the gateway with required probes, which `lakegate up` turns off, and with these settings."""
    gateway.kill()
    gateway.start(ENGINE_PROBES__REQUIRED="true", **settings)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("trust")
    with _up() as stack:
        world, gateway = World(stack), Killable(stack, folder / "gateway.log")
        restart(gateway)
        people = (world.alice, world.etl, world.carol, world.bob, world.steward)
        try:
            for person in people:
                world.strip(person)
            for engine in (world.alice, world.etl):
                for privilege in ("delegate", "enforcer"):
                    world.grant(privilege, engine, "warehouse", world.warehouse)
            namespace = world.namespace()
            # Trino reads the configuration of the catalog as itself, so it must see the warehouse.
            world.grant("describe", world.alice, "namespace", world.namespace_id(namespace))
            world.grant("project_admin", world.steward, "project", world.project)
            table = wide(world, namespace)
            assert give(world, table, "name", world.carol).status_code == 204
            with bridged(world, folder) as bridge:
                yield Site(world, gateway, bridge, table, f"{namespace}.{table.path.rpartition('/')[2]}")
        finally:
            world.close()
            gateway.close()


@pytest.mark.threat("LG-DEC-42")
def test_trino_that_enforces_restrictions_becomes_trusted(site: Site, tmp_path: Path) -> None:
    world, select = site.world, f"select name from {site.name}"
    world.sql("delete from engine_probes")
    with trino_server(world, site.bridge, tmp_path, site.engine) as trino:
        assert not site.is_trusted(), "the engine was never probed"
        with pytest.raises(Refused, match="enforcer"):
            trino.run(world.carol, select)
        result = site.run_probe(trino)
        assert (result["verdict"], result["trusted"]) == ("passed", True), result
        assert site.is_trusted()
        assert trino.run(world.carol, select) == []
        with pytest.raises(Refused):
            trino.run(world.carol, f"select * from {site.name}")


@pytest.mark.threat("LG-DEC-42")
def test_trino_without_access_control_loses_the_trust(site: Site, tmp_path: Path) -> None:
    passed(site.world, site.engine)
    assert site.is_trusted()
    with trino_server(site.world, site.bridge, tmp_path, site.engine, access=NO_ACCESS_CONTROL) as trino:
        result = site.run_probe(trino)
        assert (result["verdict"], result["trusted"]) == ("failed", False), result
        assert "value" in result["detail"], result
        assert not site.is_trusted()
        with pytest.raises(Refused, match="enforcer"):
            trino.run(site.world.carol, f"select name from {site.name}")
