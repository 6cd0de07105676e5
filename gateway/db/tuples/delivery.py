# SPDX-License-Identifier: Apache-2.0
"""Deliver tuple keys to OpenFGA: read the desired state from the rows, write it, and remove the keys from the outbox.

The outbox lists the keys (user, relation, object) whose tuples may differ in OpenFGA. A request delivers the keys of
its own change before it answers. Keys that remain after a crash or an outage are delivered in the background by any
process.

A write without a known outcome (no response, or a killed process) may still be carried out later, after another
delivery of the same key. So each write is recorded before it is sent. A key that has a record of an earlier write is
written again immediately, but stays in the outbox until OpenFGA must have given up the earlier write. Until then a
revocation is not confirmed.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.dependency_errors import (
    CommitUnknown,
    ConditionConflict,
    DatabaseUnavailable,
    DecisionEngineUnavailable,
    WriteOutcomeUnknown,
)
from gateway.access.nouns.cards import IN_A_WAREHOUSE
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectType
from gateway.access.tuples import MANAGED_ACCESS, TupleKey
from gateway.db.engine.database import Database
from gateway.db.tuples import outbox
from gateway.db.tuples.delivery_statements import Begun, begin, finish
from gateway.db.tuples.new_tuple_delivery import NOTE_SECONDS, NOTES, NewTupleDelivery, NewTuples, WriteTuples
from gateway.db.tuples.outbox import STRUCTURAL, Pending

_log = structlog.get_logger("db.delivery")

_BATCH = 90

_REFUSED_AGAIN_SECONDS = 3600.0
_CONTENDED_AGAIN_SECONDS = 5.0

_PATIENCE = 4
_PATIENCE_SECONDS = 0.05

_REPLACEMENTS = 3

_ENDS = datetime.min


class DeliveryObserver(Protocol):
    """Receives figures of deliveries, for metrics."""

    def tuple_delivered(self, seconds: float) -> None:
        """Record the duration of one delivered batch."""
        ...

    def outbox_counted(self, pending: int) -> None:
        """Set the number of pending keys in the outbox."""
        ...


class TupleDelivery:
    """Delivery of the outbox to OpenFGA.

    A write may still be carried out for `settle_seconds` after it was recorded. This time is the timeout of a call,
    plus the server's own limit for a request, plus a margin of one second. `new_tuples` selects how the tuples of new
    objects are written.
    """

    def __init__(
        self,
        database: Database,
        write: WriteTuples,
        observer: DeliveryObserver,
        *,
        settle_seconds: float = 7.0,
        new_tuples: NewTuples = NewTuples.GROUPED,
    ) -> None:
        self._new = NewTupleDelivery(database, write, settle_seconds=settle_seconds, mode=new_tuples)
        self._database = database
        self._write = write
        self._observer = observer
        self._settle_seconds = settle_seconds

    async def deliver(self, pending: Sequence[Pending]) -> None:
        """Deliver these keys in batches.

        Raises DecisionEngineUnavailable or DatabaseUnavailable; the remaining keys stay due. Keys that revoke nothing
        may stay due without an error.
        """
        new = [row for row in pending if row.sent_at is not None]
        left = await self._deliver_new(new) if new else ()
        unsure = await self._deliver([*left, *(row for row in pending if row.sent_at is None)])
        if any(row.takes_away for row in unsure):
            raise DecisionEngineUnavailable("An earlier write to OpenFGA may still be in progress.")

    async def _deliver_new(self, new: Sequence[Pending]) -> Sequence[Pending]:
        """Deliver tuples of new objects. Return the keys that must be delivered under a lock instead."""
        started = time.perf_counter()
        left = await self._new.deliver(new)
        self._observer.tuple_delivered(time.perf_counter() - started)
        return left

    async def _deliver(self, pending: Sequence[Pending]) -> list[Pending]:
        """Deliver the keys.

        Return those that were written but stay due, because an earlier write may still change them.
        """
        unsure: list[Pending] = []
        for start in range(0, len(pending), _BATCH):
            batch = pending[start : start + _BATCH]
            started = time.perf_counter()
            try:
                unsure += await self._deliver_batch(batch)
            except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown):
                raise
            except Exception as refused:
                unsure += await self._deliver_each(batch, refused)
            self._observer.tuple_delivered(time.perf_counter() - started)
        return unsure

    async def _deliver_each(self, batch: Sequence[Pending], refused: Exception) -> list[Pending]:
        """Deliver the keys of a refused batch one by one, so that an undeliverable key does not block the others.

        The undeliverable key stays in the outbox, is logged, and is retried every hour. If it failed because another
        client keeps writing the tuple, it is retried after seconds: OpenFGA may accept it then.
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
                unsure += await self._deliver_batch([row])
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

    async def deliver_or_defer(self, pending: Sequence[Pending]) -> bool:
        """Deliver keys that revoke nothing. Return False if an outage leaves them to the background."""
        try:
            await self.deliver(pending)
        except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown) as outage:
            # The change is committed, so an error of its delivery does not change the response.
            _log.warning("tuples.delivery_postponed", count=len(pending), reason=str(outage))
            return False
        return True

    async def deliver_due(self) -> int:
        """Deliver one batch of due keys and return its size."""
        async with self._database.transaction() as connection:
            due = outbox.complete_moves(await outbox.due(connection, limit=_BATCH), limit=_BATCH)
            if not due:
                return 0
            # The keys are postponed before the delivery, in this transaction: if OpenFGA fails, other processes do not
            # retry the same keys immediately.
            await outbox.postpone(connection, [row.id for row in due], seconds=5.0)
        await self._deliver(due)
        return len(due)

    def report_pending(self, count: int) -> None:
        """Report the number of pending keys to the metrics."""
        self._observer.outbox_counted(count)

    async def _deliver_batch(self, batch: Sequence[Pending]) -> list[Pending]:
        """Deliver one batch. Return the rows that stay due, because an earlier write may still change their keys."""
        keys = list(dict.fromkeys(row.key for row in batch))
        async with self._database.locked(outbox.lock_names(keys)) as connection:
            sending = _Sending(connection, [row.id for row in batch], self._write)
            begun = await self._begin(sending, batch, keys)
            # If a row is gone, another process delivered the key after the change, so this one does not deliver it
            # again.
            batch = [row for row in batch if row.id in begun.sent_before]
            if not batch:
                return []
            keys = list(dict.fromkeys(row.key for row in batch))
            exist = begun.desired
            try:
                await sending.apply_changes(
                    {key: exist[key] for key in keys if key in exist}, [key for key in keys if key not in exist]
                )
            except WriteOutcomeUnknown:
                raise
            except Exception:
                # Nothing was written, or the outcome of all writes is known. So no write can be carried out later.
                await outbox.unmark(connection, begun.sent_before)
                raise
            unsure = [row for row in batch if row.key in begun.settled_at]
            if unsure:
                await outbox.unmark(connection, {row.id: begun.sent_before[row.id] for row in unsure})
                await outbox.postpone_delivery(connection, {row.id: begun.settled_at[row.key] for row in unsure})
            await _finish(connection, batch, begun)
        return unsure

    async def _begin(self, sending: _Sending, batch: Sequence[Pending], keys: Sequence[TupleKey]) -> Begun:
        """Begin a delivery. A revocation first waits a moment for an earlier write.

        The write of a new object's tuple holds no lock, and its record is removed when it ends.
        """
        takes_away = {row.key for row in batch if row.takes_away}
        begun = await sending.begin(keys, window_seconds=self._settle_seconds)
        for _ in range(_PATIENCE):
            if takes_away.isdisjoint(begun.settled_at):
                break
            await outbox.unmark(sending.connection, begun.sent_before)
            await asyncio.sleep(_PATIENCE_SECONDS)
            begun = await sending.begin(keys, window_seconds=self._settle_seconds)
        return begun


class _Sending:
    """Sends the writes for rows of the outbox, and records each write just before it is sent.

    If a write was sent long after its record, it would be considered settled too early.
    """

    def __init__(self, connection: AsyncConnection, ids: Sequence[int], write: WriteTuples) -> None:
        self.connection = connection
        self._ids = list(ids)
        self._write = write
        self._noted = -math.inf

    async def begin(self, keys: Sequence[TupleKey], *, window_seconds: float) -> Begun:
        """Read the desired tuples and record that a write is in flight (`delivery_statements.begin`)."""
        started = time.monotonic()
        begun = await begin(self.connection, self._ids, keys, window_seconds=window_seconds)
        self._noted = started
        return begun

    async def _note(self) -> None:
        """Record that a write is in flight.

        Raises DatabaseUnavailable if recording took so long that the record is not recent.
        """
        for _ in range(NOTES):
            if time.monotonic() - self._noted < NOTE_SECONDS:
                return
            started = time.monotonic()
            await outbox.mark_sent(self.connection, self._ids)
            self._noted = started
        if time.monotonic() - self._noted >= NOTE_SECONDS:
            raise DatabaseUnavailable("the database took too long to record the delivery")

    async def _send(self, writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        await self._note()
        await self._write(writes, deletes)

    async def apply_changes(self, writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        """Write and delete tuples in one call if possible. To change an expiry, delete the tuple and write it again.

        OpenFGA does not tell which tuple has another expiry, so it is found by bisection. Edges stay in one call, so
        that no object has two parents or none.
        """
        try:
            await self._send(writes, deletes)
        except ConditionConflict:
            edges = {key: end for key, end in writes.items() if key.relation in STRUCTURAL}
            others = {key: end for key, end in writes.items() if key not in edges}
            if others and (edges or deletes):
                await self.apply_changes(edges, deletes)
                await self.apply_changes(others, ())
            elif len(writes) > 1:
                pairs = list(writes.items())
                await self.apply_changes(dict(pairs[: len(pairs) // 2]), ())
                await self.apply_changes(dict(pairs[len(pairs) // 2 :]), ())
            else:
                await self._replace(writes, deletes)

    async def _replace(self, writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
        """Delete a tuple, then write it with the desired expiry.

        Another client of OpenFGA may write the tuple with another expiry in between, so this is attempted a few times.
        Raises ConditionConflict if every attempt failed.
        """
        for tries_left in range(_REPLACEMENTS - 1, -1, -1):
            await self._send({}, [*deletes, *writes])
            try:
                await self._send(writes, ())
                return
            except ConditionConflict:
                if not tries_left:
                    raise


#: Cached responses about these types depend on the revision of their warehouse, all others on the revision of the
#: server.
_IN_WAREHOUSE = IN_A_WAREHOUSE | {ObjectType.WAREHOUSE}
#: Relations whose tuples can revoke a right although they have no expiry.
_REVOKES_WITHOUT_END = frozenset({MANAGED_ACCESS, Privilege.DELEGATE.value, Privilege.SUBJECT.value})


async def _finish(connection: AsyncConnection, batch: Sequence[Pending], begun: Begun) -> None:
    """Remove the settled rows, and change the revisions for which an allow may have ended.

    These are the revisions of rows that revoke something and were effective: the tuple is deleted, or has an expiry,
    which may be earlier than before. Some written tuples revoke rights too. The flag of managed access revokes rights
    by its existence. A grant of `delegate` revokes by narrower limits, which the tuple does not contain. A new subject
    of a data policy reads less than before, and so may a new member of a role. So no cached allow, and no request in
    progress, outlives the revoked right.
    """
    losing = [
        row
        for row in batch
        if row.takes_away
        and (
            row.key.relation in _REVOKES_WITHOUT_END
            or row.key.object.type is ObjectType.ROLE
            or begun.desired.get(row.key, _ENDS) is not None
        )
    ]
    within = {row.warehouse_id if row.key.object.type in _IN_WAREHOUSE else None for row in losing}
    done = [row.id for row in batch if row.key not in begun.settled_at]
    if not within:
        await outbox.done(connection, done)
        return
    await finish(connection, done, [id for id in within if id is not None], server_too=None in within)
