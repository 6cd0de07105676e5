# SPDX-License-Identifier: Apache-2.0
"""Delivering tuple keys to OpenFGA: read what the rows want now, make it so, note that it is so.

The request that changed something delivers its own keys before it answers (T2 and T3); what is left over (a crash, an
outage) is delivered in the background by any process.

A write whose end nobody knows (no answer, or its process was killed) may be carried out later, after another delivery
of the same key. So each write is noted before it is sent, and a key with such a note is written at once but called done
only when OpenFGA must have given up the earlier write: a revocation is not confirmed before it can last.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

import structlog
from sqlalchemy import bindparam, update
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.access.dependency_errors import (
    CommitUnknown,
    ConditionConflict,
    DatabaseUnavailable,
    DecisionEngineUnavailable,
    WriteOutcomeUnknown,
)
from gateway.access.refs import IN_A_WAREHOUSE, ObjectType
from gateway.access.tuples import MANAGED_ACCESS, TupleKey
from gateway.db import outbox
from gateway.db.desired_tuples import wanted
from gateway.db.engine import Database, commit
from gateway.db.outbox import STRUCTURAL, Pending
from gateway.db.schema.servers import server
from gateway.db.schema.warehouses import warehouses

_log = structlog.get_logger("db.delivery")

_BATCH = 90

_REFUSED_AGAIN_SECONDS = 3600.0
_CONTENDED_AGAIN_SECONDS = 5.0

_NOTE_SECONDS = 0.5
_NOTES = 4

_REPLACEMENTS = 3

_ENDS = datetime.min


class DeliveryObserver(Protocol):
    """Is told how delivery goes, for metrics."""

    def tuple_delivered(self, seconds: float) -> None:
        """One batch was made so."""
        ...

    def outbox_counted(self, pending: int) -> None:
        """So many keys wait."""
        ...


WriteTuples = Callable[[Mapping[TupleKey, datetime | None], Sequence[TupleKey]], Awaitable[None]]
"""Writes tuples, each with its end or None, and deletes tuples, in one transaction of OpenFGA and idempotently.

Raises ConditionConflict when nothing was written because a tuple is there with another end, WriteOutcomeUnknown when
nobody knows, DecisionEngineUnavailable when nothing was written, and anything else when OpenFGA will never take it.
"""


class TupleDelivery:
    """Makes OpenFGA follow the rows.

    `settle_seconds` is how long after it was noted a write may still be carried out: the time limit of a call, plus the
    server's own limit for a request, plus a margin of a second.
    """

    def __init__(
        self, database: Database, write: WriteTuples, observer: DeliveryObserver, *, settle_seconds: float = 7.0
    ) -> None:
        self._database = database
        self._write = write
        self._observer = observer
        self._settle_seconds = settle_seconds

    async def deliver(self, pending: Sequence[Pending]) -> None:
        """Make these keys so, in batches. Raises DecisionEngineUnavailable or DatabaseUnavailable; then the
        rest stays due. Of what takes nothing away, some may stay due without that.
        """
        unsure = await self._deliver(pending)
        if any(row.takes_away for row in unsure):
            raise DecisionEngineUnavailable("An earlier write to OpenFGA may still be carried out.")

    async def _deliver(self, pending: Sequence[Pending]) -> list[Pending]:
        """Make these so; those that are, but that an earlier write may still change, and that therefore stay due."""
        unsure: list[Pending] = []
        for start in range(0, len(pending), _BATCH):
            batch = pending[start : start + _BATCH]
            started = time.perf_counter()
            try:
                unsure += await self._make_so(batch)
            except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown):
                raise
            except Exception as refused:
                unsure += await self._deliver_each(batch, refused)
            self._observer.tuple_delivered(time.perf_counter() - started)
        return unsure

    async def _deliver_each(self, batch: Sequence[Pending], refused: Exception) -> list[Pending]:
        """Deliver one by one what was refused together, so that one key nobody can deliver holds up no other.

        That key stays in the outbox, told in the log and tried again every hour; soon, when what was in the way is a
        tuple that somebody else keeps writing there: OpenFGA would take it the next moment.
        """
        unsure: list[Pending] = []
        if len(batch) == 1:
            contended = isinstance(refused, ConditionConflict)
            _log.error("tuple.delivery_refused", outbox_id=batch[0].id, error=type(refused).__name__)
            async with self._database.transaction() as connection:
                seconds = _CONTENDED_AGAIN_SECONDS if contended else _REFUSED_AGAIN_SECONDS
                await outbox.postpone(connection, [batch[0].id], seconds=seconds)
            if batch[0].takes_away:
                raise DecisionEngineUnavailable("OpenFGA refuses to delete a tuple") from refused
            return unsure
        failed: DecisionEngineUnavailable | None = None
        for row in sorted(batch, key=lambda each: not each.takes_away):
            try:
                unsure += await self._make_so([row])
            except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown):
                raise
            except Exception as alone:
                try:
                    await self._deliver_each([row], alone)
                except DecisionEngineUnavailable as later:
                    failed = later
        if failed is not None:
            raise failed
        return unsure

    async def deliver_or_leave(self, pending: Sequence[Pending]) -> bool:
        """As `deliver` for changes that take nothing away: an outage leaves them to the background and is no error."""
        try:
            await self.deliver(pending)
        except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown) as outage:
            # The change is committed: whatever happens to its delivery now, the answer is that it was made.
            _log.warning("tuples.delivery_postponed", count=len(pending), reason=str(outage))
            return False
        return True

    async def deliver_due(self) -> int:
        """Deliver what waits, in one batch; how many keys were made so."""
        async with self._database.transaction() as connection:
            due = outbox.whole_moves(await outbox.due(connection, limit=_BATCH), limit=_BATCH)
            if not due:
                return 0
            # Postponed first and in this transaction: should OpenFGA fail now, others do not try the same at once.
            await outbox.postpone(connection, [row.id for row in due], seconds=5.0)
        await self._deliver(due)
        return len(due)

    def tell_pending(self, count: int) -> None:
        """Tell the metrics how many keys wait."""
        self._observer.outbox_counted(count)

    async def _make_so(self, batch: Sequence[Pending]) -> list[Pending]:
        """Make one batch so; those of it that stay due, because an earlier write may still change their keys."""
        keys = list(dict.fromkeys(row.key for row in batch))
        async with self._database.locked(outbox.lock_names(keys)) as connection:
            settled_at = await outbox.unsettled(connection, keys, window_seconds=self._settle_seconds)
            exist = await wanted(connection, keys)
            sending = _Sending(connection, [row.id for row in batch], self._write)
            await sending.note()
            # A row that is gone was delivered by somebody else after its change, and so was its key.
            batch = [row for row in batch if row.id in sending.before]
            if not batch:
                return []
            keys = list(dict.fromkeys(row.key for row in batch))
            try:
                await sending.make_so(
                    {key: exist[key] for key in keys if key in exist}, [key for key in keys if key not in exist]
                )
            except WriteOutcomeUnknown:
                raise
            except Exception:
                # Nothing was written, or all that was is known, so nothing can come late.
                await outbox.unmark(connection, sending.before)
                await commit(connection)
                raise
            unsure = [row for row in batch if row.key in settled_at]
            if unsure:
                await outbox.unmark(connection, {row.id: sending.before[row.id] for row in unsure})
                await outbox.hold_back(connection, {row.id: settled_at[row.key] for row in unsure})
            await outbox.done(connection, [row.id for row in batch if row.key not in settled_at])
            await _move_revisions(connection, batch, exist)
            await commit(connection)
        return unsure


class _Sending:
    """Sends writes for some rows of the outbox, each noted there just before: what is sent long after its note would
    be taken for ended too soon.
    """

    def __init__(self, connection: AsyncConnection, ids: Sequence[int], write: WriteTuples) -> None:
        self.before: dict[int, datetime | None] = {}
        """The rows that were still there, each with the note it had."""
        self._connection = connection
        self._ids = list(ids)
        self._write = write
        self._noted = -math.inf

    async def note(self) -> None:
        """Note now that a write is under way. Raises DatabaseUnavailable when that takes too long to be true."""
        for _ in range(_NOTES):
            if time.monotonic() - self._noted < _NOTE_SECONDS:
                return
            started = time.monotonic()
            found = await outbox.mark_sent(self._connection, self._ids)
            await commit(self._connection)
            self.before = self.before or found
            self._noted = started
        if time.monotonic() - self._noted >= _NOTE_SECONDS:
            raise DatabaseUnavailable("the database takes too long to note what is sent")

    async def _send(self, writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        await self.note()
        await self._write(writes, deletes)

    async def make_so(self, writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        """Write and delete in one call if possible. A tuple with another end takes two: it is deleted, then written.

        Which one that is, is found by halves. Edges stay together, so that nothing has two parents, or none.
        """
        try:
            await self._send(writes, deletes)
        except ConditionConflict:
            edges = {key: end for key, end in writes.items() if key.relation in STRUCTURAL}
            others = {key: end for key, end in writes.items() if key not in edges}
            if others and (edges or deletes):
                await self.make_so(edges, deletes)
                await self.make_so(others, ())
            elif len(writes) > 1:
                pairs = list(writes.items())
                await self.make_so(dict(pairs[: len(pairs) // 2]), ())
                await self.make_so(dict(pairs[len(pairs) // 2 :]), ())
            else:
                await self._replace(writes, deletes)

    async def _replace(self, writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        """Delete a tuple, then write it with the end that is wanted.

        Who writes into OpenFGA directly may write it with another end in between, so it is tried a few times. Raises
        ConditionConflict when that went on.
        """
        for tries_left in range(_REPLACEMENTS - 1, -1, -1):
            await self._send({}, [*deletes, *writes])
            try:
                await self._send(writes, ())
                return
            except ConditionConflict:
                if not tries_left:
                    raise


#: A cached answer about one of these is held under its warehouse's revision, about anything else under the global one.
_IN_WAREHOUSE = IN_A_WAREHOUSE | {ObjectType.WAREHOUSE}


async def _move_revisions(
    connection: AsyncConnection, batch: Sequence[Pending], exist: Mapping[TupleKey, datetime | None]
) -> None:
    """Give fresh revisions to what may have lost an allow, so that no cached one outlives it.

    That is what was to take something away and did: its tuple is gone, or it ends, perhaps sooner than it did. The flag
    of managed access takes rights away by being there.
    """
    losing = [
        row
        for row in batch
        if row.takes_away and (row.key.relation == MANAGED_ACCESS or exist.get(row.key, _ENDS) is not None)
    ]
    within = {row.warehouse_id if row.key.object.type in _IN_WAREHOUSE else None for row in losing}
    for id in sorted(each for each in within if each is not None):
        await connection.execute(_MOVE_WAREHOUSE, {"warehouse": id, "fresh": uuid7()})
    if None in within:
        await connection.execute(_MOVE_SERVER, {"fresh": uuid7()})


_MOVE_WAREHOUSE = (
    update(warehouses).where(warehouses.c.id == bindparam("warehouse")).values(revision=bindparam("fresh"))
)
_MOVE_SERVER = update(server).values(revision=bindparam("fresh"))
