# SPDX-License-Identifier: Apache-2.0
"""The record of a long run (`tests/long_run.py`): a partial run is marked as partial."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.long_run import RESULT, Record, main, still_failed, unproved, write

_ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["version"]

_TESTS = """
import pytest

@pytest.mark.long
@pytest.mark.parametrize("number", [1, 2])
def test_long(number):
    assert number != FAILS

def test_short():
    raise AssertionError("not selected")
"""


def _run(tmp_path: Path, *options: str, fails: int = 0) -> tuple[int, dict[str, Any]]:
    test, result = tmp_path / "test_some.py", tmp_path / "result.json"
    test.write_text(_TESTS.replace("FAILS", str(fails)))
    plugins = ("-p", "tests.conftest", "-p", "no:schemathesis", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "tests.long_run", "--result", str(result), "--seed", "5", *options, *plugins]
    done = subprocess.run(
        [*command, "-c", str(_ROOT / "pyproject.toml"), str(test)],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "repeat: make test-long SEED=5" in done.stdout, done.stdout + done.stderr
    return done.returncode, json.loads(result.read_text())


def test_a_full_run_is_recorded_with_each_test_and_a_partial_one_does_not_replace_it(tmp_path: Path) -> None:
    code, found = _run(tmp_path)
    full = found["last-full"]
    assert (code, full) == (0, found["latest"])
    assert (full["complete"], full["seed"], full["selected"], full["counts"]) == (True, 5, 2, {"passed": 2})
    assert (len(full["commit"]), full["version"]) == (40, VERSION)
    assert {test["outcome"] for test in full["tests"].values()} == {"passed"}
    code, found = _run(tmp_path, "--minutes", "0")
    assert code != 0
    assert (found["latest"]["complete"], found["latest"]["counts"]) == (False, {"passed": 1})
    assert found["last-full"] == full


def test_a_failure_is_recorded_and_the_run_is_red(tmp_path: Path) -> None:
    code, found = _run(tmp_path, fails=2)
    assert (code, found["latest"]["counts"]) == (1, {"passed": 1, "failed": 1})


def test_failed_tests_run_again_with_their_seed_until_they_pass(tmp_path: Path) -> None:
    full = _run(tmp_path, fails=2)[1]["last-full"]
    code, found = _run(tmp_path, "--failed", "--seed", "6", fails=2)
    assert (code, [run["counts"] for run in found["repeated"]]) == (1, [{"failed": 1}])
    assert found["repeated"][0]["seed"] == full["seed"]
    time.sleep(1)  # Runs are identified by the second in which they started.
    code, found = _run(tmp_path, "--failed")
    assert (code, [run["counts"] for run in found["repeated"]]) == (0, [{"failed": 1}, {"passed": 1}])
    assert (found["last-full"], found["latest"], still_failed(found)) == (full, full, [])
    assert main(["--failed", "--result", str(tmp_path / "result.json")]) == 0
    assert _run(tmp_path)[1]["repeated"] == []


def test_the_outcome_of_a_test_is_its_worst_phase(tmp_path: Path) -> None:
    record = Record("0.1.0", "c", False, 1, "now")
    for outcome in ("passed", "failed", "passed"):
        record.note("a", outcome, 1.5)
    assert record.tests == {"a": ("failed", 4.5)}
    write(tmp_path / "r.json", record.written())
    assert json.loads((tmp_path / "r.json").read_text())["last-full"] is None


@pytest.mark.parametrize("run", ["last-full", "latest"])
def test_the_committed_record_describes_a_run(run: str) -> None:
    found = json.loads(RESULT.read_text())[run]
    if found is not None:
        keys = {"version", "commit", "complete", "counts", "minutes", "seed", "selected", "started", "tests"}
        assert keys <= set(found)
        assert found["complete"] == (found["selected"] == len(found["tests"]))


def test_no_released_version_is_newer_than_the_last_full_run() -> None:
    assert unproved(json.loads(RESULT.read_text()), (_ROOT / "CHANGELOG.md").read_text()) == []


@pytest.mark.parametrize(
    ("version", "missing"),
    [("0.3.0", []), ("0.2.0", []), ("0.1.9", ["0.2"]), ("0.0.9", ["0.2", "0.1"]), (None, ["0.2", "0.1"])],
)
def test_a_release_without_a_full_run_is_found(version: str | None, missing: list[str]) -> None:
    changelog = "# Changelog\n\n## 0.10 (unreleased)\n\n### Added\n\n## 0.2 (2027-02-01)\n\n## 0.1 (2026-12-01)\n"
    assert unproved({"last-full": version and {"version": version}}, changelog) == missing
