# SPDX-License-Identifier: Apache-2.0
"""`lakegate warehouse`: each setting of a warehouse that the API can change, by a command."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.cli.exit_codes import ExitCode
from gateway.cli.warehouses import SETTINGS
from tests.support.stack.warehouses import Made, credential, make
from tests.support.stack.world import World, unique


@pytest.fixture
def made(world: World) -> Made:
    """Return a warehouse of this test."""
    return make(world)


def dump(value: Any) -> str:
    """Return a value in YAML, as an option takes it."""
    return value if isinstance(value, str) else yaml.safe_dump(value)


def command(world: World, *arguments: str, token: str | None = None) -> Result:
    """Return the result of a subcommand, as the administrator without another token."""
    where = ("--gateway", world.base, "--token", token or world.admin.token)
    return CliRunner().invoke(main, ["warehouse", *arguments, *where], catch_exceptions=False)


def shown(world: World, warehouse: str) -> dict[str, Any]:
    """Return the settings that `show` prints."""
    done = command(world, "show", warehouse)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = yaml.safe_load(done.output)
    return found


def test_each_setting_is_changed_and_shown(world: World, made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEGATE_APPLY_KEY", world.ready.s3.secret_key)
    storage = {**shown(world, made.id)["storage"], "sts-token-validity-seconds": 1200}
    secret = {**credential(world), "secret-access-key": {"env": "LAKEGATE_APPLY_KEY"}}
    stated: dict[str, Any] = {
        "name": unique("renamed"),
        "status": "inactive",
        "protected": True,
        "managed-access": True,
        "policy-loss": "announce",
        "delete-profile": {"type": "soft", "expiration-seconds": 60, "absent-purge-requested": "keep"},
        "allowed-format-versions": [2, 3],
        "default-format-version": 3,
        "task-queues": {"soft_deletion": {"max-seconds-since-last-heartbeat": 300}},
        "storage": storage,
    }
    # Only an instance administrator changes `managed-by`, so it is a setting of another test.
    assert {*stated, "credential", "managed-by"} == {name for name, _ in SETTINGS}
    options = [part for name, value in (stated | {"credential": secret}).items() for part in (f"--{name}", dump(value))]
    done = command(world, "set", made.id, *options)
    assert done.exit_code == 0, done.output
    after = shown(world, made.id)
    assert {name: after[name] for name in stated} == stated
    # The same values change nothing, and other ones stay as they are.
    again = command(world, "set", stated["name"], "--policy-loss", "announce")
    assert "No changes." in again.output, again.output
    back = command(world, "set", stated["name"], "--status", "active", "--task-queues", "{soft_deletion: {}}")
    assert back.exit_code == 0, back.output
    assert shown(world, made.id) == {**after, "status": "active", "task-queues": {}}


def test_policy_loss_needs_a_right_that_owners_lack(world: World, made: Made) -> None:
    owner = world.stranger("owner")
    world.grant("ownership", owner, "warehouse", made.id)
    protected = command(world, "set", made.id, "--protected", "true", token=owner.token)
    assert protected.exit_code == 0, protected.output
    refused = command(world, "set", made.id, "--policy-loss", "announce", token=owner.token)
    assert refused.exit_code == ExitCode.REFUSED
    assert "a security administrator of the project can grant it" in refused.output
    found = shown(world, made.id)
    assert (found["protected"], found["policy-loss"]) == (True, "refuse-restricted")


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ((), "give at least one setting"),
        (("--policy-loss", "ignore"), "--policy-loss: "),
        (("--protected", "[true"), "--protected, line 1: the file is not valid YAML"),
        (("--task-queues", "{task_log_cleanup: {}}"), "--task-queues"),
        (("--default-format-version", "3"), "needs allowed-format-versions"),
        (("--credential", "{type: s3, credential-type: access-key, secret-access-key: text}"), "secrets do not belong"),
    ],
)
def test_an_invalid_setting_is_refused_with_its_name(world: World, options: tuple[str, ...], fault: str) -> None:
    before = shown(world, world.warehouse)
    done = command(world, "set", world.warehouse, *options)
    assert done.exit_code != 0
    assert fault in done.output
    assert shown(world, world.warehouse) == before


def test_an_unknown_warehouse_is_refused_with_the_remedy(world: World) -> None:
    done = command(world, "show", "nowhere")
    assert done.exit_code == 1
    assert "you see no warehouse nowhere in the project" in done.output
