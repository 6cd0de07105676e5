# SPDX-License-Identifier: Apache-2.0
"""The CI workflows of `lakegate init policies` and `init model` fail on a change that widens access."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gateway.cli.common import DIFFERS
from lakegate.local.policy_repository import create_model, create_repository

_GIT = ("git", "-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
_WIDENS = re.compile(r"\+ |allow |weaker ")
ENV = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def git(directory: Path, *arguments: str) -> None:
    subprocess.run([*_GIT, *arguments], cwd=directory, check=True, capture_output=True, timeout=60)


def commit(directory: Path) -> None:
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message", "a change")


def commands(directory: Path, workflow: str) -> list[str]:
    """Return the scripts of a workflow for a change, without those that install programs."""
    (job,) = yaml.safe_load((directory / ".github/workflows" / workflow).read_text())["jobs"].values()
    scripts = [each["run"] for each in job["steps"] if "run" in each and "push" not in each.get("if", "")]
    return [each for each in scripts if not any(word in each for word in ("pip install", "curl "))]


def checked(directory: Path, workflow: str) -> tuple[int, str]:
    """Run the workflow on the checkout of a change. Return (exit code, output)."""
    git(directory, "worktree", "prune")
    for script in commands(directory, workflow):
        done = subprocess.run(
            ["bash", "-e", "-c", script], cwd=directory, env=ENV, capture_output=True, text=True, timeout=600
        )
        if done.returncode:
            break
    git(directory, "worktree", "remove", "--force", "../base")
    return done.returncode, done.stdout + done.stderr


def frozen(directory: Path, *tables: str) -> None:
    (directory / "policies/policy_data/freeze/data.json").write_text(json.dumps({"tables": tables}))


def thawed_table(directory: Path) -> None:
    create_repository(directory)
    question = json.loads((directory / "decisions.jsonl").read_text())["input"]["questions"][0]
    frozen(directory, question["resource"]["id"])
    commit(directory)
    frozen(directory)


def wider_drop(directory: Path) -> None:
    create_model(directory)
    # `tests/policies/test_model.py` runs the complete tests of the model.
    for file in (directory / "fga_model/tests").glob("*.fga.yaml"):
        if file.name != "server.fga.yaml":
            file.unlink()
    commit(directory)
    file = directory / "fga_model/table.fga"
    text = file.read_text()
    assert "define can_drop: modifies" in text
    file.write_text(text.replace("define can_drop: modifies", "define can_drop: modifies or selects", 1))


@pytest.mark.parametrize(
    ("workflow", "acknowledged", "change", "expected"),
    [
        ("policies.yaml", "widened-policies.txt", thawed_table, "allow drop_table table_frozen"),
        ("model.yaml", "widened-model.txt", wider_drop, "table#can_drop <- table#select"),
    ],
)
def test_widening_change_fails_until_its_line_is_acknowledged(
    tmp_path: Path, workflow: str, acknowledged: str, change: Callable[[Path], None], expected: str
) -> None:
    directory = tmp_path / "checkout"
    directory.mkdir()
    git(directory, "init", "--quiet", "--initial-branch", "main")
    change(directory)
    commit(directory)
    code, output = checked(directory, workflow)
    assert code == DIFFERS, output
    lines = [each.partition(": ")[0].removeprefix("+ ") for each in output.splitlines() if _WIDENS.match(each)]
    assert expected in lines
    with (directory / acknowledged).open("a") as file:
        file.write("\n".join([*lines, ""]))
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--amend", "--no-edit")
    code, output = checked(directory, workflow)
    assert code == 0, output
    (directory / "README.md").write_text("Another change.\n")
    commit(directory)
    code, output = checked(directory, workflow)
    assert (code, f"stale acknowledgement: {expected}" in output) == (DIFFERS, True), output
