# SPDX-License-Identifier: Apache-2.0
"""`lakegate conformance` for each extension point, as a third party runs it: with an installed package.

The package `folders` has a correct extension for each point, and `broken` a wrong one, which must fall.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner

from gateway.cli.conformance import conformance as conformance_commands
from gateway.extensions import ExtensionGroup
from lakegate.conformance.authorizers import AUTHORIZER_RULES
from lakegate.conformance.events import SINK_RULES
from lakegate.conformance.rules import Rule
from lakegate.conformance.secrets import SECRET_RULES
from lakegate.conformance.storage import CREDENTIAL_RULES, FILE_RULES, PROFILE_RULES
from lakegate.conformance.verifiers import VERIFIER_RULES
from tests.extensions.installing import install
from tests.support.kits import conformance

TABLE = f"table:{uuid4()}"


@dataclass(frozen=True)
class Point:
    """An extension point: the correct extension, its arguments, the rules, and the one that the wrong one breaks."""

    correct: str
    arguments: tuple[str, ...]
    rules: tuple[Rule[Any], ...]
    broken: str


POINTS: dict[ExtensionGroup, Point] = {
    ExtensionGroup.AUTHORIZERS: Point(
        "freeze", ("--expected", "answers.json"), AUTHORIZER_RULES, "each question has its answer, in order"
    ),
    ExtensionGroup.SECRETS: Point("folder", (), SECRET_RULES, "content is never replaced"),
    ExtensionGroup.EVENTS: Point(
        "folder", ("--reader", "lakegate_folders.events:read"), SINK_RULES, "one event is refused alone"
    ),
    ExtensionGroup.VERIFIERS: Point(
        "calendar", ("--option", "folder=frozen"), VERIFIER_RULES, "a change has one verdict, in time"
    ),
    ExtensionGroup.STORAGE: Point(
        "folder",
        ("--profile", "profile.json"),
        (*PROFILE_RULES, *FILE_RULES, *CREDENTIAL_RULES),
        "a location is exactly below the base",
    ),
}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Install both packages. Return a function that runs the command for (point, name, arguments)."""
    site = tmp_path / "site"
    for folder in ("site", "secrets", "frozen", "events", "volume"):
        (tmp_path / folder).mkdir()
    install(site, "folders")
    install(site, "broken")
    (tmp_path / "frozen" / TABLE).touch()
    answers = [
        {"user": "oidc~ann", "relation": relation, "object": TABLE, "allowed": relation == "can_read_data"}
        for relation in ("can_read_data", "can_drop")
    ]
    files = {"answers.json": answers, "profile.json": {"volume": "v", "path": "base"}}
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    environment = {
        "LAKEGATE_FOLDERS_SECRETS": str(tmp_path / "secrets"),
        "LAKEGATE_FOLDERS_FROZEN": str(tmp_path / "frozen"),
        "LAKEGATE_FOLDERS_EVENTS": str(tmp_path / "events"),
        "LAKEGATE_FOLDERS_VOLUMES": f"v={tmp_path / 'volume'}",
    }

    def run(group: ExtensionGroup, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        placed = [str(tmp_path / each) if each in files else each for each in arguments]
        placed = [each.replace("folder=", f"folder={tmp_path}/") for each in placed]
        return conformance(site, group.removeprefix("lakegate."), name, *placed, **environment)

    return run


def test_every_extension_point_is_checked() -> None:
    assert set(POINTS) == set(ExtensionGroup)


@pytest.mark.parametrize("group", POINTS)
def test_the_command_accepts_a_correct_extension_of_a_package(run: Run, group: ExtensionGroup) -> None:
    point = POINTS[group]
    done = run(group, point.correct, *point.arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"holds   {rule.name}" for rule in point.rules]


@pytest.mark.parametrize("group", POINTS)
def test_the_command_names_the_rule_that_an_extension_breaks(run: Run, group: ExtensionGroup) -> None:
    point = POINTS[group]
    done = run(group, "broken", *point.arguments)
    before = [rule.name for rule in point.rules]
    before = before[: before.index(point.broken)]
    assert done.stdout.splitlines() == [*(f"holds   {name}" for name in before), f"BROKEN  {point.broken}"], done.stderr
    assert done.returncode == 1 and "Traceback" not in done.stderr


REFUSED = [
    *((group, "nothing", point.arguments, "nothing") for group, point in POINTS.items()),
    (ExtensionGroup.EVENTS, "log", ("--reader", "no_such_module:read"), "No module named 'no_such_module'"),
    (ExtensionGroup.EVENTS, "log", ("--reader", "json:absent"), "no attribute 'absent'"),
    (ExtensionGroup.EVENTS, "log", ("--reader", "://"), "invalid format"),
    (ExtensionGroup.VERIFIERS, "calendar", ("--option", "folder"), "as key=value, not 'folder'"),
]


@pytest.mark.parametrize(("group", "name", "arguments", "message"), REFUSED)
def test_the_command_refuses_what_it_cannot_open(
    group: ExtensionGroup, name: str, arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "file.json"
    file.write_text("[]")
    given = [str(file) if each.endswith(".json") else each for each in arguments]
    done = CliRunner().invoke(conformance_commands, [group.removeprefix("lakegate."), name, *given])
    assert done.exit_code == 1 and message in done.output, done.output
    assert isinstance(done.exception, SystemExit), "the error must be a message and no traceback"
