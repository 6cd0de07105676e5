# SPDX-License-Identifier: Apache-2.0
"""`lakegate client`: a machine identity is registered and gets grants before its first request."""

from __future__ import annotations

import json

from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.cli.exit_codes import ExitCode
from tests.support.stack.exchanging import acting
from tests.support.stack.world import Person, World, error_triple, unique


def command(person: Person, world: World, *arguments: str) -> Result:
    """Run `lakegate client` as a user."""
    return CliRunner().invoke(
        main, ["client", *arguments, "--gateway", world.base], env={"LAKEGATE_TOKEN": person.token}
    )


def test_registered_engine_uses_its_grants_from_its_first_token_on(world: World, ns: str) -> None:
    table = world.table(ns)
    world.grant("select", world.carol, "table", table.uuid)
    subject = unique("trino")
    identity = f"oidc~{subject}"
    place = f"warehouse/{world.ready.warehouse}"
    unknown = world.admin.post(
        world.grants_path("warehouse", world.warehouse), {"writes": [{"type": "delegate", "user": identity}]}
    )
    assert error_triple(unknown)[:2] == (404, "GrantTargetNotFound")
    assert "lakegate client register" in unknown.text

    granting = ("register", identity, "--name", "trino", "--grant", "delegate", "--grant", "inspector", "--on", place)
    done = command(world.admin, world, *granting)
    assert done.exit_code == 0, done.output
    assert done.output == f"registered {identity}\ngranted delegate, inspector on {place}\n"

    engine = world.person_with(subject)
    assert acting(world, engine, world.carol).get(table.path).status_code == 200

    again = command(world.admin, world, *granting)
    assert (again.exit_code, again.output) == (
        0,
        f"already registered: {identity}\ngranted delegate, inspector on {place}\n",
    )
    shown = command(world.admin, world, "show", identity, "--json")
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.output)
    assert found["client"]["user-type"] == "application"
    assert sorted(each["privilege"] for each in found["grants"]) == ["delegate", "inspector"]
    lines = command(world.admin, world, "show", identity).output.splitlines()
    assert f"  - inspector on warehouse {world.warehouse}" in lines
    listed = command(world.admin, world, "list")
    assert any(line.startswith(f"{identity}\ttrino\t") for line in listed.output.splitlines())


def test_registration_gives_no_right_and_needs_an_administrator_of_the_server(world: World, ns: str) -> None:
    table = world.table(ns)
    subject = unique("engine")
    refused = command(world.carol, world, "register", f"oidc~{subject}", "--name", "engine")
    assert refused.exit_code == ExitCode.REFUSED
    assert "Forbidden" in refused.output
    assert command(world.admin, world, "register", f"oidc~{subject}", "--name", "engine").exit_code == 0
    assert error_triple(world.person_with(subject).get(table.path))[0] == 404


def test_mistyped_arguments_change_nothing(world: World) -> None:
    identity = f"oidc~{unique('engine')}"
    for arguments, text in (
        (("--grant", "delegate", "--on", "warehouse/no-such-warehouse"), "no active warehouse"),
        (("--grant", "delegate"), "give --grant and --on together"),
        (("--grant", "delegate", "--on", "table/t"), "Write table/WAREHOUSE/NAMESPACE.NAME"),
    ):
        done = command(world.admin, world, "register", identity, "--name", "engine", *arguments)
        assert done.exit_code != 0
        assert text in done.output
    assert world.admin.get(f"/management/v1/user/{identity}").status_code == 404
    without_tilde = command(world.admin, world, "register", "trino", "--name", "trino")
    assert without_tilde.exit_code == 2
    assert "oidc~trino" in without_tilde.output


def test_a_person_is_not_registered_as_a_client(world: World) -> None:
    done = command(
        world.admin,
        world,
        "register",
        world.stranger().id,
        "--name",
        "engine",
        "--grant",
        "delegate",
        "--on",
        f"warehouse/{world.warehouse}",
    )
    assert done.exit_code == 1
    assert "not as an application" in done.output
