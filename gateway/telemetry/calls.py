# SPDX-License-Identifier: Apache-2.0
"""Count the calls of each endpoint in memory. The counts are regularly added to those in the database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Call:
    """The key of a counter: a response with this status on this route (`GET /management/v1/project`).

    The project or warehouse is None if the request concerned none, or several.
    """

    project_id: str | None
    warehouse_id: UUID | None
    route: str
    status: int


class Calls:
    """The counters of one process, by warehouse, route and status. Clients cannot create other keys."""

    def __init__(self) -> None:
        self._counts: Counter[Call] = Counter()

    def add(self, call: Call) -> None:
        """Count one call."""
        self._counts[call] += 1

    def take(self) -> Mapping[Call, int]:
        """Return all counts and reset them. The caller writes them to the database."""
        taken, self._counts = self._counts, Counter()
        return taken

    def put_back(self, taken: Mapping[Call, int]) -> None:
        """Add back the counts that could not be written."""
        self._counts.update(taken)
