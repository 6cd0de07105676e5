# SPDX-License-Identifier: Apache-2.0
"""Requests that a test helper sent again after 429 or 503, counted for the whole run.

Sending them again hides a gateway that cannot keep up. So the run reports each of them, and fails when tests that take
no component away needed more than a few. Counts travel in test reports, so the processes of pytest-xdist need nothing
else.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

#: Requests a run may send again outside of outage tests before it fails.
BUDGET = 25

#: Words in the names of test files that stop, kill or overload components: retries there are no news.
_OUTAGES = (
    "outage",
    "failing_parts",
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
    """Retries of the test that runs, and of the whole run."""

    _current: int = 0
    by_test: Counter[str] = field(default_factory=Counter)

    def note(self) -> None:
        """Count one request that is sent again, once however often it is."""
        self._current += 1

    def attach(self, report: pytest.TestReport) -> None:
        """Move the count of a phase of a test into its report."""
        if self._current:
            report.user_properties.append((_PROPERTY, self._current))
            self._current = 0

    def read(self, report: pytest.TestReport) -> None:
        """Add what a report carries to the counts of the run."""
        self.by_test[report.nodeid] += sum(
            int(str(value)) for name, value in report.user_properties if name == _PROPERTY
        )

    def beyond_outages(self) -> int:
        """Return how many requests were sent again by tests that take nothing away."""
        return sum(count for nodeid, count in self.by_test.items() if not _is_outage(nodeid))

    def summary(self) -> list[str]:
        """Return the lines of the report, none if no request was sent again."""
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
