# SPDX-License-Identifier: Apache-2.0
"""Read OpenFGA's change feed, which lists written and deleted tuples in the order of their change ids.

OpenFGA assigns an id when a write begins, and shows the change when the write ends. So a change can appear later, at a
position before changes that were already read. A reader that must miss no change reads the recent past again
(`gateway.features.tuples.drift`).
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

#: OpenFGA's maximum number of changes in a page.
_PAGE_SIZE: Final = 100


class Change(msgspec.Struct, frozen=True):
    """One written or deleted tuple. `timestamp` is by OpenFGA's clock. A deletion has no condition."""

    tuple_key: FgaTuple
    operation: Literal["TUPLE_OPERATION_WRITE", "TUPLE_OPERATION_DELETE"]
    timestamp: datetime

    @property
    def written(self) -> bool:
        """Return True if the change wrote the tuple, and False if it deleted the tuple."""
        return self.operation == "TUPLE_OPERATION_WRITE"


class _Page(msgspec.Struct):
    changes: list[Change] = []
    continuation_token: str = ""


async def changes_since(client: FgaClient, start: datetime | None) -> AsyncIterator[Change]:
    """Yield the changes from `start` on (None: all changes), oldest first, until the end of the feed.

    With the setting `changelog-horizon-offset`, the server returns each change later by that time. Raises
    DecisionEngineUnavailable; the changes yielded before it are incomplete.
    """
    parameters: dict[str, str | int] = {"page_size": _PAGE_SIZE}
    if start is not None:
        parameters["start_time"] = start.isoformat().replace("+00:00", "Z")
    while True:
        page = await client.get(f"/changes?{urlencode(parameters)}", _Page)
        for change in page.changes:
            yield change
        if len(page.changes) < _PAGE_SIZE or not page.continuation_token:
            return
        if page.continuation_token == parameters.get("continuation_token"):
            raise DecisionEngineUnavailable("OpenFGA returned the same page of changes twice.")
        parameters = {"page_size": _PAGE_SIZE, "continuation_token": page.continuation_token}
