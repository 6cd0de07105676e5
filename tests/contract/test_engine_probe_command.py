# SPDX-License-Identifier: Apache-2.0
"""`lakegate engine probe` with real engines on the running gateway: commands, and `lakegate.reader`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from tests.support.engines.trino_pages import trino
from tests.support.stack.columns import give, wide
from tests.support.stack.engine_probes import canaries, passed, policies, state
from tests.support.stack.exchanging import acting
from tests.support.stack.world import World

pytestmark = pytest.mark.servers


@pytest.fixture(autouse=True)
def unprobed(world: World) -> Iterator[None]:
    """Remove all probes, and the grants of the engine and of carol, before and after the test."""

    def clean() -> None:
        world.sql("delete from engine_probes")
        for person in (world.etl, world.carol):
            world.strip(person)

    clean()
    for privilege in ("delegate", "enforcer"):
        world.grant(privilege, world.etl, "warehouse", world.warehouse)
    yield
    clean()


def probed(world: World, kind: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    """Run the command with an engine of this kind (`probed_engine.py`)."""
    return probe(world, monkeypatch, "--command", f"{sys.executable} -m tests.support.stack.probed_engine {kind}")


def probe(world: World, monkeypatch: pytest.MonkeyPatch, *way: str) -> Result:
    """Run the command. `way` are the options that select the engine."""
    monkeypatch.setenv("GATEWAY", world.base)
    monkeypatch.setenv("ENGINE_TOKEN", world.etl.token)
    monkeypatch.setenv("LAKEGATE_TOKEN", world.admin.token)
    arguments = ["engine", "probe", "--gateway", world.base, "--engine", world.etl.id, "--user", world.carol.id]
    place = ["--on", f"warehouse/{world.warehouse}", *way]
    return CliRunner().invoke(main, [*arguments, *place], catch_exceptions=False)


def listed(world: World) -> str:
    """Return the output of `lakegate engine list`."""
    arguments = ["--on", f"warehouse/{world.warehouse}", "--gateway", world.base, "--token", world.admin.token]
    done = CliRunner().invoke(main, ["engine", "list", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_enforcing_engine_passes_and_its_canary_is_dropped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    done = probed(world, "enforcing", monkeypatch)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("self-test passed: ")
    assert "verdict" not in state(world, world.etl)
    assert f"{world.etl.id}\tnot probed\t" in listed(world)
    assert canaries(world) == []
    assert policies(world) == []


@pytest.mark.parametrize(("kind", "reason"), [("unfiltered", "row filter"), ("unmasked", "unmasked value")])
def test_engine_that_ignores_one_data_policy_fails(
    world: World, kind: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = probed(world, kind, monkeypatch)
    assert done.exit_code == 1, done.output
    assert reason in done.output
    assert state(world, world.etl)["trusted"] is False
    assert policies(world) == []


def test_reader_passes_and_without_delegate_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEGATE_PROBE_ENGINE_TOKEN", world.etl.token)
    done = probe(world, monkeypatch, "--reader")
    assert done.exit_code == 0, done.output
    world.revoke("delegate", world.etl, "warehouse", world.warehouse)
    assert probe(world, monkeypatch, "--reader").exit_code == 1


def test_example_of_the_documentation_passes(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs/engine-probes.md").read_text()
    [example] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    program = tmp_path / "read_canary.py"
    program.write_text(example.replace("https://lakegate.example.com", world.base))
    monkeypatch.setenv("SERVICE_TOKEN", world.etl.token)
    done = probe(world, monkeypatch, "--command", f"{sys.executable} {program}")
    assert done.exit_code == 0, done.output


def test_engine_that_ignores_the_restriction_fails_and_loses_the_trust(
    world: World, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = wide(world, ns)
    assert give(world, table, "name", world.carol).status_code == 204
    carol = acting(world, world.etl, world.carol)
    assert carol.get(table.path).status_code == 200
    done = probed(world, "raw", monkeypatch)
    assert done.exit_code == 1, done.output
    assert "may not read" in done.output
    assert carol.get(table.path).status_code == 403
    assert f"{world.etl.id}\tfailed\t" in listed(world)
    assert probed(world, "enforcing", monkeypatch).exit_code == 0
    assert carol.get(table.path).status_code == 403, "a self-test must not restore the trust"
    passed(world, world.etl)
    assert give(world, table, "name", world.carol).status_code == 204
    assert carol.get(table.path).status_code == 200


def test_engine_that_shows_nothing_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert probed(world, "silent", monkeypatch).exit_code == 1
    assert state(world, world.etl)["verdict"] == "failed"


def test_engine_without_delegate_cannot_read_the_canary_and_fails(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.revoke("delegate", world.etl, "warehouse", world.warehouse)
    assert probed(world, "enforcing", monkeypatch).exit_code == 1
    assert state(world, world.etl)["verdict"] == "failed"


def test_engine_that_is_down_keeps_its_state(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    done = probed(world, "unreachable", monkeypatch)
    assert done.exit_code == 2, done.output
    assert "verdict" not in state(world, world.etl)
    assert canaries(world) == []


@pytest.mark.parametrize(("option", "user"), [([], "carol"), (["--trino-user", "oidc~carol"], "oidc~carol")])
def test_trino_gets_its_own_name_of_the_test_user(
    world: World, option: list[str], user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trino() as (url, received):
        probe(world, monkeypatch, "--trino-url", url, *option)
    assert {name for name, _ in received} == {user}


def test_enforcer_is_granted_on_a_table_by_the_command(world: World, ns: str) -> None:
    table = wide(world, ns)
    arguments = ["client", "register", world.etl.id, "--name", "etl", "--grant", "enforcer", "--on"]
    arguments += [f"table/{world.ready.warehouse}/{table.uuid}", "--gateway", world.base, "--token", world.admin.token]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    held = "select object_id from grants where principal_id = $1 and privilege = 'enforcer' and object_type = 'table'"
    assert [row["object_id"] for row in world.sql(held, world.etl.id)] == [table.uuid]
