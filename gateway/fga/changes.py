# SPDX-License-Identifier: Apache-2.0
"""OpenFGA's change feed: which tuples were written and deleted, in the order of the ids the server gave the changes.

An id is given when a write begins and seen when it ends, so a change may appear before one that was read already. Who
must miss nothing reads again what was read a moment ago (`gateway.tasks.drift`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final, Literal
from urllib.parse import urlencode

import msgspec

from gateway.access.dependency_errors import DecisionEngineUnavailable
from gateway.fga.client import FgaClient
from gateway.fga.wire import FgaTuple

#: The most that OpenFGA gives in one page.
_PAGE_SIZE: Final = 100


class Change(msgspec.Struct, frozen=True):
    """One tuple that was written or deleted; a deletion tells no condition. `timestamp` is by the server's clock."""

    tuple_key: FgaTuple
    operation: Literal["TUPLE_OPERATION_WRITE", "TUPLE_OPERATION_DELETE"]
    timestamp: datetime

    @property
    def written(self) -> bool:
        """Whether the tuple exists after this change."""
        return self.operation == "TUPLE_OPERATION_WRITE"


class _Page(msgspec.Struct):
    changes: list[Change] = []
    continuation_token: str = ""


async def changes_since(client: FgaClient, start: datetime | None) -> AsyncIterator[Change]:
    """The changes from `start` on (all there are when None), oldest first, until there are no more.

    A server that holds changes back (its setting `changelog-horizon-offset`) gives them that much later. Raises
    DecisionEngineUnavailable; what came until then is not all.
    """
    asked: dict[str, str | int] = {"page_size": _PAGE_SIZE}
    if start is not None:
        asked["start_time"] = start.isoformat().replace("+00:00", "Z")
    while True:
        page = await client.get(f"/changes?{urlencode(asked)}", _Page)
        for change in page.changes:
            yield change
        if len(page.changes) < _PAGE_SIZE or not page.continuation_token:
            return
        if page.continuation_token == asked.get("continuation_token"):
            raise DecisionEngineUnavailable("OpenFGA gave the same page of changes twice.")
        asked = {"page_size": _PAGE_SIZE, "continuation_token": page.continuation_token}
