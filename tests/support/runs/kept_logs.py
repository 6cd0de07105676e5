# SPDX-License-Identifier: Apache-2.0
"""Logs of stacks that a failed test used, kept in `.lakegate/test-logs/` after the stack was removed."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

DIRECTORY = Path(__file__).parents[3] / ".lakegate" / "test-logs"

#: The number of directories that are kept; older ones are removed.
_KEPT = 20


@dataclass
class Failures:
    """Failures of this process, and the start time of its run."""

    began: float = field(default_factory=time.time)
    count: int = 0

    def read(self, report: pytest.TestReport) -> None:
        """Count a report that failed."""
        self.count += report.failed


FAILURES = Failures()


def keep(*logs: Path, directory: Path = DIRECTORY) -> Path | None:
    """Copy the logs that exist into a new directory; return it, None if no log exists."""
    found = [log for log in logs if log.is_file()]
    if not found:
        return None
    kept = directory / f"{time.strftime('%Y%m%dT%H%M%S')}-{time.monotonic_ns() % 10**9}"
    kept.mkdir(parents=True)
    for log in found:
        shutil.copyfile(log, kept / log.name)
    for old in sorted(each for each in directory.iterdir() if each.is_dir())[:-_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return kept


def summary(since: float, directory: Path = DIRECTORY) -> list[str]:
    """Return the log directories of this run, including those of other processes of the run."""
    if not directory.is_dir():
        return []
    return [str(each) for each in sorted(directory.iterdir()) if each.stat().st_mtime >= since]
