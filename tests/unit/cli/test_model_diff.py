# SPDX-License-Identifier: Apache-2.0
"""`lakegate model diff` on directories, with its exit codes and the file of acknowledgements."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.cli.common import DIFFERS
from tests.support.docs_commands import ROOT

SELECTS = "define selects: select or"
WIDENED = [
    "column#can_read_data <- table#describe",
    "table#can_grant_select <- table#describe and table#pass_grants",
    "table#can_read_columns <- table#describe",
    "table#can_read_data <- table#describe",
]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["model", "diff", *arguments])


@pytest.fixture(scope="module")
def wider(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a model in which `describe` on a table also gives its data."""
    folder = tmp_path_factory.mktemp("own") / "fga_model"
    shutil.copytree(ROOT / "fga_model", folder)
    file = folder / "table.fga"
    text = file.read_text()
    assert SELECTS in text
    file.write_text(text.replace(SELECTS, "define selects: describe or select or"))
    return folder


def test_widening_without_acknowledgement_fails(wider: Path) -> None:
    done = run("packaged", str(wider.parent))
    assert done.exit_code == DIFFERS
    assert done.stdout.splitlines() == [*(f"+ {line}" for line in WIDENED), "4 implications more, 0 fewer"]
    assert "4 implications widen access without an acknowledgement" in done.stderr


def test_narrowing_needs_no_acknowledgement(wider: Path) -> None:
    done = run(str(wider), "packaged")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [*(f"- {line}" for line in WIDENED), "0 implications more, 4 fewer"]


def test_acknowledgement_must_be_exact(wider: Path, tmp_path: Path) -> None:
    file = tmp_path / "widened.txt"
    file.write_text("# readers of metadata read data\n" + "\n".join(WIDENED))
    assert run("packaged", str(wider), "--acknowledged", str(file)).exit_code == 0
    file.write_text("\n".join(WIDENED[1:]))
    assert run("packaged", str(wider), "--acknowledged", str(file)).exit_code == DIFFERS
    file.write_text("\n".join([*WIDENED, "table#can_drop <- table#describe"]))
    stale = run("packaged", str(wider), "--acknowledged", str(file))
    assert stale.exit_code == DIFFERS
    assert "stale acknowledgement: table#can_drop <- table#describe" in stale.stderr


def test_json_names_the_facts(wider: Path) -> None:
    found = json.loads(run("packaged", str(wider), "--format", "json").stdout)
    assert found["widened"][1]["facts"] == [
        {"on": "table", "relation": "describe", "holds": True},
        {"on": "table", "relation": "pass_grants", "holds": True},
    ]
    assert (found["narrowed"], found["depth"], found["stale"]) == ([], 2, [])
    assert found["unacknowledged"] == WIDENED


def test_a_name_without_a_model_is_an_error(tmp_path: Path) -> None:
    done = run("packaged", str(tmp_path / "absent"))
    assert done.exit_code == 1
    assert "contains no fga.mod" in done.stderr
