# SPDX-License-Identifier: Apache-2.0
"""Requests that a test helper retried after 429 or 503, counted for the whole run.

Retries can hide a gateway that is too slow. So the run reports them, and fails if tests without outages needed more
than a few. Counts are part of test reports, so the processes of pytest-xdist need no other channel.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

#: The number of requests that the run of one stage may retry outside of outage tests before it fails.
BUDGET = 15

#: Words in the names of test files that stop, kill or overload components: retries are expected there.
_OUTAGES = (
    "outage",
    "dependency_failures",
    "kill",
    "maintenance",
    "slow_clients",
    "racing",
    "starv",
    "fairness",
    "admission",
)

_PROPERTY = "requests sent again"


@dataclass
class Retries:
    """Retries of the running test, and of the whole run."""

    _current: int = 0
    by_test: Counter[str] = field(default_factory=Counter)

    def note(self) -> None:
        """Count one retried request, once for any number of retries."""
        self._current += 1

    def attach(self, report: pytest.TestReport) -> None:
        """Move the count of a phase of a test into its report."""
        if self._current:
            report.user_properties.append((_PROPERTY, self._current))
            self._current = 0

    def read(self, report: pytest.TestReport) -> None:
        """Add the counts of a report to those of the run."""
        self.by_test[report.nodeid] += sum(
            int(str(value)) for name, value in report.user_properties if name == _PROPERTY
        )

    def beyond_outages(self) -> int:
        """Return the number of retried requests of tests without outages."""
        return sum(count for nodeid, count in self.by_test.items() if not _is_outage(nodeid))

    def summary(self) -> list[str]:
        """Return the lines of the report, empty without retries."""
        found = [(nodeid, count) for nodeid, count in self.by_test.most_common() if count]
        if not found:
            return []
        beyond = self.beyond_outages()
        lines = [f"{sum(count for _, count in found)} requests sent again after 429 or 503"]
        lines.append(f"{beyond} of them outside of outage tests, {BUDGET} are allowed")
        return lines + [f"  {count:4} {nodeid}" for nodeid, count in found[:15]]


RETRIES = Retries()


def _is_outage(nodeid: str) -> bool:
    file = nodeid.partition("::")[0].rpartition("/")[2]
    return any(word in file for word in _OUTAGES)
