# SPDX-License-Identifier: Apache-2.0
"""How often each endpoint was called since this was last written down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Call:
    """What is counted apart: an answer of this status on this route (`GET /management/v1/project`), about something in
    this project and warehouse. None where a request was about none, or about several.
    """

    project_id: str | None
    warehouse_id: UUID | None
    route: str
    status: int


class Calls:
    """The counts of one process. There are as many as routes, statuses and warehouses that exist, whatever is sent."""

    def __init__(self) -> None:
        self._counts: Counter[Call] = Counter()

    def add(self, call: Call) -> None:
        """One more."""
        self._counts[call] += 1

    def take(self) -> Mapping[Call, int]:
        """All counts, to be written down; counting begins anew."""
        taken, self._counts = self._counts, Counter()
        return taken

    def put_back(self, taken: Mapping[Call, int]) -> None:
        """What could not be written down is counted on."""
        self._counts.update(taken)
