# SPDX-License-Identifier: Apache-2.0
"""Write the tuples of new objects to OpenFGA. The tuples of concurrent requests are written in one call.

The transaction of the creation has recorded that this write will happen (`ownership.py`). Requests that wait at the
same moment share one call to OpenFGA, and one statement that removes their rows from the outbox. A group is sent as
soon as a call may begin, so no request waits for a later one. If OpenFGA refuses a group, each request is written
alone, so that the tuples of one request do not fail another.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from gateway.access.dependency_errors import (
    CommitUnknown,
    DatabaseUnavailable,
    DecisionEngineUnavailable,
    WriteOutcomeUnknown,
)
from gateway.access.tuples import TupleKey
from gateway.db.engine.database import Database
from gateway.db.tuples import outbox
from gateway.db.tuples.outbox import Pending

WriteTuples = Callable[[Mapping[TupleKey, datetime | None], Sequence[TupleKey]], Awaitable[None]]
"""Writes tuples, each with its expiry or None, and deletes tuples, in one idempotent transaction of OpenFGA.

Raises ConditionConflict if nothing was written because a tuple exists with another expiry, WriteOutcomeUnknown if the
outcome is unknown, DecisionEngineUnavailable if nothing was written, and any other error if OpenFGA will never accept
the write.
"""

NOTE_SECONDS: Final = 0.5
"""The longest time between the record of a write and the write. A write that is sent long after its record would be
considered settled too early.
"""

#: The maximum number of renewals of the record of a write, until one is recent enough.
NOTES: Final = 4

_LARGEST: Final = 90
_CALLS_AT_ONCE: Final = 2

_OUTAGES = (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown)


class NewTuples(StrEnum):
    """Select how tuples of new objects are written: in a shared call, one call a request, or under advisory locks."""

    GROUPED = "grouped"
    SINGLE = "single"
    LOCKED = "locked"


@dataclass(eq=False, slots=True)
class _Request:
    """The tuples of one request. `done` receives the rows that must be delivered under a lock instead."""

    rows: Sequence[Pending]
    done: asyncio.Future[Sequence[Pending]] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def finish(self, left: Sequence[Pending]) -> None:
        if not self.done.done():
            self.done.set_result(left)

    def fail(self, error: BaseException) -> None:
        # The future may be done already, because the request ended at its deadline.
        if not self.done.done():
            self.done.set_exception(error)


class NewTupleDelivery:
    """Delivers the tuples of new objects.

    A write may still be carried out for `settle_seconds` after it was recorded.
    """

    def __init__(self, database: Database, write: WriteTuples, *, settle_seconds: float, mode: NewTuples) -> None:
        self._database = database
        self._write = write
        self._settle_seconds = settle_seconds
        self._mode = mode
        self._waiting: deque[_Request] = deque()
        self._calls: set[asyncio.Task[None]] = set()

    async def deliver(self, rows: Sequence[Pending]) -> Sequence[Pending]:
        """Write the tuples of `rows`, whose writes are recorded. Return the keys that must be delivered under a lock.

        Their tuples were refused by OpenFGA, or another process has taken their rows. Raises DecisionEngineUnavailable
        or DatabaseUnavailable; the rows then stay due.
        """
        request = _Request(rows)
        if self._mode is NewTuples.LOCKED:
            await self._unmark([request])
            return rows
        if self._mode is NewTuples.SINGLE:
            await self._send([request])
            return await request.done
        self._waiting.append(request)
        self._begin()
        return await request.done

    def _begin(self) -> None:
        """Begin a call for the waiting requests, unless enough calls are already in progress."""
        if len(self._calls) >= _CALLS_AT_ONCE or not self._waiting:
            return
        call = asyncio.get_running_loop().create_task(self._run())
        self._calls.add(call)
        call.add_done_callback(self._ended)

    def _ended(self, call: asyncio.Task[None]) -> None:
        self._calls.discard(call)
        self._begin()

    async def _run(self) -> None:
        group: list[_Request] = []
        size = 0
        while self._waiting and (not group or size + len(self._waiting[0].rows) <= _LARGEST):
            group.append(self._waiting.popleft())
            size += len(group[-1].rows)
        if not group:
            return
        try:
            await self._send(group)
        except Exception as failed:
            for request in group:
                request.fail(failed)
        except BaseException:
            for request in group:
                request.fail(DecisionEngineUnavailable("the process ends"))
            raise

    async def _send(self, group: Sequence[_Request]) -> None:
        """Write the tuples of a group, remove their rows from the outbox, and finish the requests.

        An error of an outage is not raised here, but in the requests.
        """
        try:
            rows = await self._note(group)
            if rows:
                await self._write({row.key: None for row in rows}, ())
                async with self._database.autocommit() as connection:
                    await outbox.done_as_noted(connection, rows)
        except WriteOutcomeUnknown as unknown:
            # The record of the write is kept, because OpenFGA may still carry the write out.
            _fail(group, unknown)
        except _OUTAGES as outage:
            await self._unmark(group)
            _fail(group, outage)
        except Exception:
            if len(group) > 1:
                for request in group:
                    await self._send([request])
                return
            await self._unmark(group)
            group[0].finish(group[0].rows)
        else:
            written = {row.id for row in rows}
            for request in group:
                request.finish([row for row in request.rows if row.id not in written])

    async def _note(self, group: Sequence[_Request]) -> Sequence[Pending]:
        """Return the rows that may be written, after renewing the records that are not recent.

        A record is renewed only while it counts as a write in flight. Otherwise another delivery of the key may have
        been confirmed meanwhile. Rows that another process has taken are left out. Raises DatabaseUnavailable if a
        record is still not recent after several renewals.
        """
        rows = [row for request in group for row in request.rows]
        for _ in range(NOTES):
            old = [row for row in rows if time.monotonic() - row.noted >= NOTE_SECONDS]
            if not old:
                return rows
            noted = time.monotonic()
            async with self._database.autocommit() as connection:
                at = await outbox.renew_note(connection, old, within_seconds=self._settle_seconds / 2)
            for request in group:
                request.rows = [
                    replace(row, sent_at=at[row.id], noted=noted) if row.id in at else row for row in request.rows
                ]
            taken = {row.id for row in old} - at.keys()
            rows = [row for request in group for row in request.rows if row.id not in taken]
        raise DatabaseUnavailable("the database took too long to record the delivery")

    async def _unmark(self, group: Sequence[_Request]) -> None:
        """Remove the records of writes that were not carried out.

        A record that remains only delays a later delivery.
        """
        try:
            async with self._database.autocommit() as connection:
                await outbox.unmark_noted(connection, [row for request in group for row in request.rows])
        except _OUTAGES:
            return


def _fail(group: Sequence[_Request], error: Exception) -> None:
    for request in group:
        request.fail(error)
