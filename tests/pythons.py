# SPDX-License-Identifier: Apache-2.0
"""Run the tests without a stack on several versions of Python: `python -m tests.pythons 3.11 3.12`.

Each version gets an environment from `requirements/development.lock` in `.lakegate/pythons`. The file
`tests/results/pythons.json` records the results; a version that is not named keeps its record, and a version without
an interpreter is "not installed".
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
RESULT = Path(__file__).with_name("results") / "pythons.json"
TESTS = ("tests/unit", "tests/access")
NOT_INSTALLED = "not installed"

_COUNTS = ("passed", "failed", "skipped")


def candidates(version: str, pyenv: Path, path: str) -> list[Path]:
    """Return the possible interpreters of a version: those of pyenv, newest first, then the one on the path."""
    installed = [each for each in pyenv.glob(f"versions/{version}.*/bin/python") if _patch(each).isdecimal()]
    installed.sort(key=lambda each: int(_patch(each)), reverse=True)
    on_path = shutil.which(f"python{version}", path=path)
    return [*installed, *([Path(on_path)] if on_path else [])]


def _patch(interpreter: Path) -> str:
    return interpreter.parents[1].name.rpartition(".")[2]


def find(version: str, pyenv: Path, path: str) -> tuple[Path, str] | None:
    """Return (interpreter, its full version) of the first candidate that runs and has this version, or None."""
    for candidate in candidates(version, pyenv, path):
        argv = [str(candidate), "-c", "import platform; print(platform.python_version())"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        full = done.stdout.strip()
        if done.returncode == 0 and full.startswith(f"{version}."):
            return candidate, full
    return None


def counts(report: str) -> dict[str, int]:
    """Return the numbers of passed, failed and skipped tests in a JUnit report. An error counts as failed."""
    found = dict.fromkeys(_COUNTS, 0)
    for case in ElementTree.fromstring(report).iter("testcase"):  # noqa: S314 - pytest wrote it
        below = {child.tag for child in case}
        outcome = "failed" if below & {"failure", "error"} else "skipped" if "skipped" in below else "passed"
        found[outcome] += 1
    return found


def failures(report: str) -> list[str]:
    """Return the names of the failed tests in a JUnit report."""
    cases = ElementTree.fromstring(report).iter("testcase")  # noqa: S314 - pytest wrote it
    failed = [case for case in cases if {child.tag for child in case} & {"failure", "error"}]
    return sorted(f"{case.get('classname')}::{case.get('name')}" for case in failed)


def merged(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the records of all versions in the order of the versions; those of this run replace earlier ones."""
    both = {**before, **now}
    return {
        version: both[version] for version in sorted(both, key=lambda each: [int(part) for part in each.split(".")])
    }


def _environment(version: str, interpreter: Path) -> Path:
    """Create the environment of a version from the lock file; return its interpreter."""
    directory = ROOT / ".lakegate" / "pythons" / version
    python = directory / "bin" / "python"
    lock = (ROOT / "requirements/development.lock").read_text()
    complete = directory / "development.lock"
    if not complete.is_file() or complete.read_text() != lock:
        shutil.rmtree(directory, ignore_errors=True)
        subprocess.run([str(interpreter), "-m", "venv", str(directory)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--require-hashes", "-r", "requirements/development.lock"], cwd=ROOT, check=True)
        subprocess.run([*pip, "--no-build-isolation", "--no-index", "-e", "."], cwd=ROOT, check=True)
        complete.write_text(lock)
    return python


def run(version: str, rest: Sequence[str]) -> dict[str, Any]:
    """Test one version; return its record.

    Raises:
        subprocess.CalledProcessError: its environment cannot be created.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = find(version, pyenv, os.environ.get("PATH", os.defpath))
    if found is None:
        return {"result": NOT_INSTALLED}
    interpreter, full = found
    python = _environment(version, interpreter)
    report = ROOT / ".lakegate" / "pythons" / f"{version}.xml"
    report.unlink(missing_ok=True)
    argv = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long", f"--junitxml={report}"]
    code = subprocess.run([*argv, *TESTS, *rest], cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode
    if not report.is_file():
        return {"python": full, "result": f"pytest ended with code {code} and without a report"}
    text = report.read_text()
    return {"python": full, "result": "passed" if code == 0 else "failed", **counts(text), "failures": failures(text)}


def main(arguments: list[str]) -> int:
    """Test the versions and write the record; 0 if no tested version failed. Other arguments go to pytest."""
    parser = argparse.ArgumentParser(prog="python -m tests.pythons", description="Test versions of Python.")
    parser.add_argument("versions", nargs="+", metavar="VERSION", help="3.12, for example")
    given, rest = parser.parse_known_args(arguments)
    results = {version: run(version, rest) for version in given.versions}
    before = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    RESULT.write_text(json.dumps(merged(before, results), indent=1) + "\n")
    for version, record in results.items():
        print(f"Python {version}: {record}")
    return 0 if all(record["result"] in ("passed", NOT_INSTALLED) for record in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
