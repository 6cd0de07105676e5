# SPDX-License-Identifier: Apache-2.0
"""`lakegate engine probe --trino-url` on a real Trino: with the bridge, without its masks and filters, and stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from lakegate.local import engines
from tests.support.engines.trino import trino_server
from tests.support.engines.trino_calls import pytestmark
from tests.support.engines.trino_lake import Lake
from tests.support.rows.parts import free_port
from tests.support.stack.engine_probes import canaries, policies, state
from tests.support.stack.trino_bridge import KEY
from tests.support.stack.world import World

__all__ = ["pytestmark"]


@pytest.fixture(autouse=True)
def unprobed(world: World) -> Iterator[None]:
    """Remove all probes before and after the test."""
    world.sql("delete from engine_probes")
    yield
    world.sql("delete from engine_probes")


def probe(world: World, lake: Lake, url: str, catalog: str = "ice") -> Result:
    """Probe Trino's service at this address; the test user is one without rights."""
    arguments = ["--gateway", world.base, "--token", world.admin.token, "--engine", lake.service.id]
    arguments += ["--on", f"warehouse/{world.warehouse}", "--user", lake.stranger.id]
    arguments += ["--trino-url", url, "--trino-catalog", catalog]
    return CliRunner().invoke(main, ["engine", "probe", *arguments], catch_exceptions=False)


def test_trino_with_the_bridge_passes_and_can_be_probed_again(world: World, lake: Lake) -> None:
    for _ in range(2):
        done = probe(world, lake, lake.trino.url)
        assert done.exit_code == 0, done.output
        assert done.output.startswith("self-test passed: ")
    assert state(world, lake.service)["trusted"] is True
    assert canaries(world) == policies(world) == []


def test_trino_without_a_part_of_the_access_control_fails(world: World, lake: Lake, tmp_path: Path) -> None:
    """The bridge allows the statement and returns the restrictions where this Trino does not request them."""
    access = engines.access_control_properties(lake.bridge.url, KEY)
    kept = [line for line in access.splitlines() if "row-filters-uri" not in line and "masking-uri" not in line]
    assert len(kept) == len(access.splitlines()) - 2
    text = "\n".join(kept)
    with trino_server(world, lake.bridge, tmp_path, lake.service, access=text) as trino:
        done = probe(world, lake, trino.url)
    assert done.exit_code == 1, done.output
    assert "unmasked value of the masked column" in done.output
    assert state(world, lake.service)["trusted"] is False
    assert canaries(world) == policies(world) == []
    assert probe(world, lake, lake.trino.url).exit_code == 0, "a repaired Trino must be able to pass"


def test_trino_that_shows_nothing_of_the_table_fails(world: World, lake: Lake) -> None:
    done = probe(world, lake, lake.trino.url, catalog="unknown")
    assert done.exit_code == 1, done.output
    assert "did not read the table" in done.output
    assert state(world, lake.service)["trusted"] is False


def test_trino_that_does_not_answer_keeps_its_state(world: World, lake: Lake) -> None:
    assert probe(world, lake, lake.trino.url).exit_code == 0
    done = probe(world, lake, f"http://127.0.0.1:{free_port()}")
    assert done.exit_code == 2, done.output
    assert "No result was posted" in done.output
    assert state(world, lake.service)["trusted"] is True
    assert canaries(world) == policies(world) == []
