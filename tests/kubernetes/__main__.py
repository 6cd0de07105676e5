# SPDX-License-Identifier: Apache-2.0
"""Run the tests of the Helm chart on an API server: ``make test-kubernetes``.

The last result is `tests/results/kubernetes.json`: each test with its outcome and duration. A run of selected tests
(arguments of pytest) does not replace it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.kubernetes.control_plane import VERSION

_ROOT = Path(__file__).parents[2]
RESULT = _ROOT / "tests" / "results" / "kubernetes.json"


class _Recorder:
    """A plugin of pytest that keeps the outcome of each test."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, str | float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a test; a failed start or end of its fixtures is a failure too."""
        if report.when == "call" or report.failed:
            self.tests[report.nodeid] = {"outcome": report.outcome, "seconds": round(report.duration, 1)}


def _commit() -> str:
    ran = subprocess.run(["git", "rev-parse", "HEAD"], cwd=_ROOT, capture_output=True, text=True, timeout=60)
    return ran.stdout.strip() or "unknown"


def main(arguments: list[str]) -> int:
    """Run the tests and write the result. Return pytest's exit code."""
    os.environ["LAKEGATE_TEST_KUBERNETES"] = "1"
    started, recorder = datetime.now(UTC), _Recorder()
    code = int(pytest.main(["-q", str(_ROOT / "tests" / "e2e" / "test_kubernetes.py"), *arguments], [recorder]))
    outcomes = [each["outcome"] for each in recorder.tests.values()]
    result = {
        "commit": _commit(),
        "kubernetes": VERSION,
        "started": started.isoformat(timespec="seconds"),
        "counts": {outcome: outcomes.count(outcome) for outcome in sorted({str(each) for each in outcomes})},
        "tests": recorder.tests,
    }
    if not arguments:
        RESULT.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
