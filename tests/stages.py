# SPDX-License-Identifier: Apache-2.0
"""Run one stage of the suite and record it: `python -m tests.stages NAME`, which the targets of the Makefile call.

The record of a stage is `.lakegate/tests/NAME.json` (outcome and seconds of each test, seconds of each file, how busy
the machine was, seed, commit) beside `NAME.xml`, its JUnit report. A test that fails runs once more at the end, alone
and with a fresh stack. If it passes then, the run passes and reports the test as flaky, with its first error. Three
such tests are the limit of a run.
A test of authorization, of an attack or of a race never runs again: one wrong answer is a fault.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from _pytest.mark.expression import Expression

from tests.support.runs.retries import BUDGET, RETRIES

_ROOT = Path(__file__).parent.parent
DIRECTORY = _ROOT / ".lakegate" / "tests"

#: The number of failed tests of a run that may pass when they run again.
FLAKY = 3

#: The number of the slowest files that a run prints.
_SHOWN = 15

_WORST_FIRST = ("failed", "skipped", "passed")


@dataclass(frozen=True)
class Stage:
    """A part of the suite: its files, the marks it selects, and the number of processes of pytest."""

    paths: tuple[str, ...]
    marks: str
    processes: int = 2
    options: tuple[str, ...] = ()


_ON_A_STACK = ("tests/contract", "tests/security", "tests/integration")

#: In the order in which `.ci/run` runs them, cheapest first.
STAGES: Mapping[str, Stage] = {
    "repository": Stage(("tests/repository",), "not long"),
    "unit": Stage(("tests/unit", "tests/access"), "not long"),
    "policies": Stage(("tests/policies",), "not long"),
    "services": Stage(_ON_A_STACK, "not long and not chaos and not servers and not generated and not attack"),
    "generated": Stage(_ON_A_STACK, "not long and (generated or attack) and not servers and not chaos"),
    "servers": Stage(_ON_A_STACK, "not long and servers and not chaos"),
    # More processes would start more stacks and engines, which cost more than they save on two processors.
    "engines": Stage(("tests/e2e",), "not long", processes=3),
    # Much of it waits: for timeouts, restarts and ends of grants.
    "chaos": Stage(_ON_A_STACK, "not long and chaos", processes=3),
}

#: Directories whose tests all get a mark from their conftest.py.
_OF_DIRECTORIES = {"tests/security": {"attack"}}

_MARK = re.compile(r"\bmark\.(\w+)")
_OF_ALL_TESTS = re.compile(r"^pytestmark = .*", re.MULTILINE)


def files_of(stage: Stage) -> list[str]:
    """Return the files that may have a test of the stage: each process would import the others in vain."""
    files = ((path, file) for path in stage.paths for file in sorted((_ROOT / path).rglob("test_*.py")))
    return [
        str(file.relative_to(_ROOT))
        for path, file in files
        if may_select(stage.marks, file.read_text(), _OF_DIRECTORIES.get(path, set()))
    ]


def may_select(marks: str, text: str, of_directory: Set[str] = frozenset()) -> bool:
    """Return False if an expression of marks selects no test of a file with this text, which names all their marks but
    those `of_directory`.
    """
    expression = Expression.compile(marks)
    of_all = {name for line in _OF_ALL_TESTS.findall(text) for name in _MARK.findall(line)} | of_directory
    of_some = [name for name in set(_MARK.findall(text)) - of_all if name in marks]
    return any(
        expression.evaluate(lambda name, /, chosen=chosen, **_: name in of_all or name in chosen)
        for count in range(len(of_some) + 1)
        for chosen in itertools.combinations(of_some, count)
    )


_NEVER_AGAIN = re.compile(r"^tests/(access|security)/|(?<![a-z])(race|races|racing)(?![a-z])")


def may_run_again(nodeid: str) -> bool:
    """Return False for tests of authorization, attacks and races, whose single failure counts."""
    return not _NEVER_AGAIN.search(nodeid)


@dataclass
class Record:
    """The record of a run.

    `tests` maps an id to its outcome and its duration in seconds. `causes` and `flaky` map a failed id to the first
    line of its error. `properties` holds what tests recorded with `record_property`.
    """

    seed: int | None
    tests: dict[str, tuple[str, float]] = field(default_factory=dict)
    causes: dict[str, str] = field(default_factory=dict)
    flaky: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)

    def note(self, nodeid: str, outcome: str, seconds: float) -> None:
        """Add a phase of a test: its outcome is the worst of its phases, its duration their sum."""
        before, spent = self.tests.get(nodeid, ("passed", 0.0))
        self.tests[nodeid] = (min(before, outcome, key=_WORST_FIRST.index), round(spent + seconds, 3))

    @property
    def failed(self) -> list[str]:
        """Return the ids that failed."""
        return sorted(nodeid for nodeid, (outcome, _) in self.tests.items() if outcome == "failed")

    @property
    def files(self) -> dict[str, float]:
        """Return the seconds of each file, longest first."""
        spent: Counter[str] = Counter()
        for nodeid, (_, seconds) in self.tests.items():
            spent[nodeid.partition("::")[0]] += seconds  # type: ignore[assignment]  # a counter of seconds
        return {file: round(seconds, 1) for file, seconds in spent.most_common()}

    def written(self, stage: str, seconds: float, busy: float) -> dict[str, Any]:
        """Return the record as it is stored. `busy` is the percentage of the time in which a processor had work."""
        return {
            "stage": stage,
            "commit": _commit(),
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "seed": self.seed,
            "seconds": round(seconds, 1),
            "busy": busy,
            "files": self.files,
            "flaky": self.flaky,
            "properties": self.properties,
            "failed": [nodeid for nodeid in self.failed if nodeid not in self.flaky],
            "tests": {nodeid: {"outcome": found[0], "seconds": found[1]} for nodeid, found in self.tests.items()},
        }


class Recorder:
    """Collect outcome, duration and first error line of each test, as a plugin of pytest."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store a phase of a test; with pytest-xdist, in the process that reports."""
        self._record.note(report.nodeid, report.outcome, report.duration)
        self._record.properties.update({name: str(value) for name, value in report.user_properties})
        if report.failed:
            self._record.causes.setdefault(report.nodeid, cause_of(report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Store a file that cannot be collected as a failed test of that name."""
        if report.failed:
            self._record.note(report.nodeid, "failed", 0.0)


def cause_of(report: pytest.TestReport) -> str:
    """Return the first line of the error that failed a phase of a test."""
    text = report.longreprtext
    errors = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return (errors or text.strip().splitlines() or ["no error was recorded"])[0][:300]


def to_run_again(failed: Sequence[str]) -> list[str]:
    """Return the failed ids that run again: all, or none if one may not run again or they are too many."""
    if len(failed) > FLAKY or not all(may_run_again(nodeid) for nodeid in failed):
        return []
    return list(failed)


def _again(nodeid: str) -> bool:
    """Run a test in a process and with a stack of its own; return True if it passes."""
    argv = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "-q", nodeid]
    return subprocess.run(argv, cwd=_ROOT, stdin=subprocess.DEVNULL, check=False).returncode == 0


def run(name: str, rest: Sequence[str], *, processes: int | None = None, directory: Path = DIRECTORY) -> int:
    """Run a stage and write its record. Return 0 if all tests passed, at once or when run again, else pytest's exit
    code.
    """
    stage = STAGES[name]
    began = time.monotonic()
    psutil.cpu_percent()  # the next call returns the mean since this one
    directory.mkdir(parents=True, exist_ok=True)
    workers = stage.processes if processes is None else processes
    options = ["-m", stage.marks, "-n", str(workers), f"--junitxml={directory / name}.xml", *stage.options]
    seed = _seed_in(rest)
    record = Record(seed)
    code = int(pytest.main([*(files_of(stage) or stage.paths), *options, *rest], plugins=[Recorder(record)]))
    if code == pytest.ExitCode.TESTS_FAILED:
        again = to_run_again(record.failed)
        record.flaky = {nodeid: record.causes.get(nodeid, "") for nodeid in again if _again(nodeid)}
        # The limit of the run for retried requests also applies to a run with flaky tests.
        if again and len(record.flaky) == len(again) and RETRIES.beyond_outages() <= BUDGET:
            code = 0
    _report(record)
    seconds, busy = time.monotonic() - began, psutil.cpu_percent()
    written = json.dumps(record.written(name, seconds, busy), indent=1)
    (directory / f"{name}.json").write_text(written + "\n")
    outcome = "passed" if code == 0 else "FAILED"
    print(f"stage {name}: {outcome} in {seconds / 60:.1f} minutes; the processors were busy for {busy:.0f} %")
    return code


def _report(record: Record) -> None:
    for file, seconds in list(record.files.items())[:_SHOWN]:
        print(f"{seconds:7.1f} s  {file}")
    for nodeid, cause in record.flaky.items():
        print(f"FLAKY {nodeid}: passed when run again; the first time: {cause}", flush=True)
    for nodeid in record.failed:
        if nodeid not in record.flaky:
            print(f"FAILED {nodeid}: {record.causes.get(nodeid, '')}", flush=True)


def _seed_in(rest: Sequence[str]) -> int | None:
    for option, value in zip(rest, rest[1:], strict=False):
        if option == "--seed":
            return int(value)
    return None


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=_ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip()


def main(arguments: list[str]) -> int:
    """Run the stage that is named first; arguments that are unknown here go to pytest."""
    parser = argparse.ArgumentParser(prog="python -m tests.stages", description="Run one stage of the suite.")
    parser.add_argument("stage", choices=list(STAGES))
    parser.add_argument("--processes", type=int, default=None, help="how many processes of pytest run it")
    given, rest = parser.parse_known_args(arguments)
    return run(given.stage, rest, processes=given.processes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
