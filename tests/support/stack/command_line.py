# SPDX-License-Identifier: Apache-2.0
"""Run `lakegate` in this process, as a user of the test stack."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from gateway.cli import main
from tests.support.stack.world import Person, World


def run(world: World, *arguments: str, by: Person | None = None, **variables: str | None) -> Result:
    """Return the result of a command. An unexpected exception fails the test, because a user would see a traceback."""
    environment = {
        "LAKEGATE__BASE_URI": world.base,
        "LAKEGATE_TOKEN": (by or world.admin).token,
        "LAKEGATE__PROFILE": None,
        **variables,
    }
    return CliRunner().invoke(main, list(arguments), env=environment, catch_exceptions=False)


def done(world: World, *arguments: str, by: Person | None = None) -> str:
    """Return the standard output of a command, which succeeds."""
    result = run(world, *arguments, by=by)
    assert result.exit_code == 0, result.output
    return result.stdout


def rows(world: World, *arguments: str, by: Person | None = None) -> list[dict[str, Any]]:
    """Return the rows that a command prints as JSON."""
    found: list[dict[str, Any]] = json.loads(done(world, *arguments, "--json", by=by))
    return found
