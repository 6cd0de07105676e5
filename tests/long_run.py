# SPDX-License-Identifier: Apache-2.0
"""Run the long tests with a seed and record the run: `python -m tests.long_run`, which `make test-long` calls.

Long tests have the mark `long` or use Hypothesis, here with other examples than in `make test`. The record
(`tests/results/long_run.json`) is written after each test, so that it is valid for an interrupted run. The last full
run stays in it until the next full one. `--failed` runs the failed tests of the last full run again, with its seed, and
adds the result.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parent.parent
RESULT = _ROOT / "tests" / "results" / "long_run.json"

#: No further test starts after this many minutes.
MINUTES = 90.0

SELECTED = "long or hypothesis"

#: Files with tests that start and kill their own stacks take longest, so they run last.
_LAST = ("test_dependency_failures", "test_killed_gateways", "test_killed_lifecycles", "test_killed_deliveries")

_WORST_FIRST = ("failed", "skipped", "passed")


@dataclass
class Record:
    """The progress of a run of a version. `tests` maps an id to its outcome and its duration in seconds."""

    version: str
    commit: str
    changed: bool
    seed: int
    started: str
    selected: int = 0
    complete: bool = False
    seconds: float = 0.0
    tests: dict[str, tuple[str, float]] = field(default_factory=dict)

    def note(self, nodeid: str, outcome: str, seconds: float) -> None:
        """Add a phase of a test: its outcome is the worst of its phases, its duration their sum."""
        before, spent = self.tests.get(nodeid, ("passed", 0.0))
        worst = min(before, outcome, key=_WORST_FIRST.index)
        self.tests[nodeid] = (worst, round(spent + seconds, 2))

    def written(self) -> dict[str, Any]:
        """Return the record as it is stored."""
        return {
            "version": self.version,
            "commit": self.commit,
            "uncommitted-changes": self.changed,
            "seed": self.seed,
            "started": self.started,
            "complete": self.complete,
            "minutes": round(self.seconds / 60, 1),
            "processors": os.cpu_count(),
            "selected": self.selected,
            "counts": dict(Counter(outcome for outcome, _ in self.tests.values())),
            "tests": {nodeid: {"outcome": found[0], "seconds": found[1]} for nodeid, found in self.tests.items()},
        }


class Recorder:
    """Plugin of pytest. Write the record after each test and begin none after `minutes`. `only`: ids, empty for all."""

    def __init__(
        self, record: Record, store: Callable[[dict[str, Any]], None], minutes: float, only: Sequence[str] = ()
    ) -> None:
        self._record = record
        self._store = store
        self._only = only
        self._until = time.monotonic() + 60 * minutes
        self._began = time.monotonic()
        self._selected: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect tests that are not to run, and put the files that take longest last."""
        if self._only:
            items[:] = [item for item in items if item.nodeid in self._only]
        items.sort(key=lambda item: item.path.stem in _LAST)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Store the number of selected tests before the first one runs."""
        self._selected = {item.nodeid for item in session.items}
        self._record.selected = len(self._selected)
        self._write()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Store a phase of a test."""
        self._record.note(report.nodeid, report.outcome, report.duration)
        if report.when == "teardown":
            self._write()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Stop before the next test when the time limit is reached."""
        if time.monotonic() > self._until:
            item.session.shouldstop = "the time of this run is over; see --minutes"

    def pytest_sessionfinish(self) -> None:
        """Store if each selected test ran."""
        self._record.complete = bool(self._selected) and self._selected <= set(self._record.tests)
        self._write()

    def _write(self) -> None:
        self._record.seconds = time.monotonic() - self._began
        self._store(self._record.written())


def write(result: Path, latest: dict[str, Any]) -> None:
    """Replace the latest run, and the last full one with its repetitions if the latest is full."""
    before = _read(result)
    if latest["complete"]:
        before |= {"last-full": latest, "repeated": []}
    _replace(result, before | {"latest": latest})


def write_repetition(result: Path, repetition: dict[str, Any]) -> None:
    """Add a repetition of the last full run, or replace the record of the same repetition."""
    before = _read(result)
    others = [each for each in before["repeated"] if each["started"] != repetition["started"]]
    _replace(result, before | {"repeated": [*others, repetition]})


def still_failed(record: dict[str, Any]) -> list[str]:
    """Return the ids that failed in the last full run and have not passed in a repetition since."""
    outcomes: dict[str, str] = {}
    for run in (record["last-full"] or {"tests": {}}, *record["repeated"]):
        outcomes |= {nodeid: test["outcome"] for nodeid, test in run["tests"].items()}
    return sorted(nodeid for nodeid, outcome in outcomes.items() if outcome == "failed")


def unproved(record: dict[str, Any], changelog: str) -> list[str]:
    """Return the released versions of the changelog that are newer than the last full run."""
    headings = re.findall(r"^## (\d[\d.]*)(.*)$", changelog, flags=re.MULTILINE)
    full = record["last-full"] or {"version": "0"}
    return [
        version
        for version, rest in headings
        if "unreleased" not in rest and _numbers(version) > _numbers(full["version"])
    ]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _read(result: Path) -> dict[str, Any]:
    found = json.loads(result.read_text()) if result.exists() else {}
    return {"last-full": None, "latest": None, "repeated": []} | found


def _replace(result: Path, record: dict[str, Any]) -> None:
    fresh = result.with_suffix(".new")
    fresh.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    fresh.replace(result)


def _git(*arguments: str) -> str:
    found = subprocess.run(["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True)
    return found.stdout.strip()


def main(arguments: list[str]) -> int:
    """Run the long tests. Pass unknown arguments to pytest, and return the exit code of pytest."""
    parser = argparse.ArgumentParser(prog="python -m tests.long_run", description="Run the long tests with a seed.")
    parser.add_argument("--seed", type=int, default=None, help="repeat the run with this seed")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="begin no test after so many minutes")
    parser.add_argument("--result", type=Path, default=RESULT, help="write the record to this file")
    parser.add_argument("--failed", action="store_true", help="run what failed in the last full run, with its seed")
    given, rest = parser.parse_known_args(arguments)
    before = _read(given.result)
    failed = still_failed(before) if given.failed else []
    if given.failed and not failed:
        print(f"{given.result} records no failure that has not passed since", flush=True)
        return 0
    seed = before["last-full"]["seed"] if failed else given.seed
    seed = secrets.randbelow(2**31) if seed is None else seed
    changed = [line for line in _git("status", "--porcelain").splitlines() if RESULT.name not in line]
    version = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["version"]
    started = datetime.now(UTC).isoformat(timespec="seconds")
    record = Record(version, _git("rev-parse", "HEAD"), bool(changed), seed, started)
    print(f"seed: {seed} (repeat: make test-long SEED={seed})", flush=True)
    options = ["-m", SELECTED, "--timeout", "1200", "--seed", str(seed), "--durations", "25", *rest]
    store = partial(write_repetition if failed else write, given.result)
    code = int(pytest.main(options, plugins=[Recorder(record, store, given.minutes, failed)]))
    print(f"seed: {seed}; {'full' if record.complete else 'NOT FULL'}; recorded in {given.result}", flush=True)
    # A run without some of the tests proves less than it was started for.
    return code if record.complete or code else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
