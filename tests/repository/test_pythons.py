# SPDX-License-Identifier: Apache-2.0
"""Test the run on several versions of Python (`tests/pythons.py`): interpreters, counts, the record."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

from tests.pythons import RESULT, ROOT, candidates, counts, failures, find, merged


def _interpreter(path: Path, output: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{output}'\n")
    path.chmod(0o755)
    return path


def test_newest_patch_of_pyenv_comes_first_and_the_path_last(tmp_path: Path) -> None:
    nine = _interpreter(tmp_path / "versions/3.12.9/bin/python", "3.12.9")
    ten = _interpreter(tmp_path / "versions/3.12.10/bin/python", "3.12.10")
    _interpreter(tmp_path / "versions/3.13.1/bin/python", "3.13.1")
    _interpreter(tmp_path / "versions/3.12.1-debug/bin/python", "3.12.1")
    other = _interpreter(tmp_path / "bin/python3.12", "3.12.3")
    assert candidates("3.12", tmp_path, str(other.parent)) == [ten, nine, other]
    assert find("3.12", tmp_path, "") == (ten, "3.12.10")


def test_interpreter_of_another_version_is_not_used(tmp_path: Path) -> None:
    directory = _interpreter(tmp_path / "bin/python3.1", "3.12.1").parent
    assert find("3.1", tmp_path, str(directory)) is None
    assert find("3.99", tmp_path, str(directory)) is None
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    (tmp_path / f"bin/python{own}").symlink_to(sys.executable)
    assert find(own, tmp_path, str(directory)) is not None


def test_counts_and_failures_are_those_of_the_report() -> None:
    report = (
        '<testsuites><testsuite><testcase classname="a" name="x"/>'
        '<testcase classname="a" name="y"><failure/></testcase>'
        '<testcase classname="a" name="z"><error/></testcase><testcase classname="a" name="w"><skipped/></testcase>'
        "</testsuite></testsuites>"
    )
    assert counts(report) == {"passed": 1, "failed": 2, "skipped": 1}
    assert failures(report) == ["a::y", "a::z"]


def test_record_of_a_version_that_did_not_run_is_kept() -> None:
    before = {"3.9": {"result": "old"}, "3.12": {"result": "old"}}
    assert list(merged(before, {"3.12": {"result": "new"}, "3.11": {"result": "new"}})) == ["3.9", "3.11", "3.12"]
    assert merged(before, {"3.12": {"result": "new"}})["3.12"] == {"result": "new"}


def test_the_package_names_only_versions_that_passed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {each.rpartition(" ")[2] for each in project["classifiers"] if ":: Python :: 3." in each}
    recorded = json.loads(RESULT.read_text())
    # CI runs all tests on 3.11.
    assert named - {"3.11"} <= {version for version, each in recorded.items() if each["result"] == "passed"}
