# SPDX-License-Identifier: Apache-2.0
"""Delivering tuple keys to OpenFGA: read what the rows want now, make it so, note that it is so (section 5 of the
design).

The request that changed something delivers its own keys before it answers (T2 and T3); what is left over (a crash, an
outage) is delivered in the background by any process.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol
from uuid import UUID

import structlog
from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.access.outage import CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable
from gateway.access.tuples import TupleKey
from gateway.db import outbox
from gateway.db.engine import Database
from gateway.db.outbox import Pending
from gateway.db.schema import server, warehouses
from gateway.db.wanted import wanted

_log = structlog.get_logger("db.delivery")

_BATCH = 90

_REFUSED_AGAIN_SECONDS = 3600.0


class DeliveryObserver(Protocol):
    """Is told how delivery goes, for metrics."""

    def tuple_delivered(self, seconds: float) -> None:
        """One batch was made so."""
        ...

    def outbox_counted(self, pending: int) -> None:
        """So many keys wait."""
        ...


WriteTuples = Callable[[Sequence[TupleKey], Sequence[TupleKey]], Awaitable[None]]


class TupleDelivery:
    """Makes OpenFGA follow the rows. `write` writes and deletes tuples idempotently and raises when unsure."""

    def __init__(self, database: Database, write: WriteTuples, observer: DeliveryObserver) -> None:
        self._database = database
        self._write = write
        self._observer = observer

    async def deliver(self, pending: Sequence[Pending]) -> None:
        """Make these keys so, in batches. Raises DecisionEngineUnavailable or DatabaseUnavailable; then the
        rest stays due.
        """
        for start in range(0, len(pending), _BATCH):
            batch = pending[start : start + _BATCH]
            started = time.perf_counter()
            try:
                async with self._database.transaction() as connection:
                    await self._make_so(connection, batch)
            except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown):
                raise
            except Exception as refused:
                await self._deliver_each(batch, refused)
            self._observer.tuple_delivered(time.perf_counter() - started)

    async def _deliver_each(self, batch: Sequence[Pending], refused: Exception) -> None:
        """Deliver one by one what was refused together, so that one key nobody can deliver holds up no other.

        That key stays in the outbox, told in the log and tried again every hour.
        """
        if len(batch) == 1:
            _log.error("tuple.delivery_refused", outbox_id=batch[0].id, error=type(refused).__name__)
            async with self._database.transaction() as connection:
                await outbox.postpone(connection, [batch[0].id], seconds=_REFUSED_AGAIN_SECONDS)
            if batch[0].takes_away:
                raise DecisionEngineUnavailable("OpenFGA refuses to delete a tuple") from refused
            return
        failed: DecisionEngineUnavailable | None = None
        for row in sorted(batch, key=lambda each: not each.takes_away):
            try:
                async with self._database.transaction() as connection:
                    await self._make_so(connection, [row])
            except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown):
                raise
            except Exception as alone:
                try:
                    await self._deliver_each([row], alone)
                except DecisionEngineUnavailable as later:
                    failed = later
        if failed is not None:
            raise failed

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
        await self.deliver(due)
        return len(due)

    def tell_pending(self, count: int) -> None:
        """Tell the metrics how many keys wait."""
        self._observer.outbox_counted(count)

    async def _make_so(self, connection: AsyncConnection, batch: Sequence[Pending]) -> None:
        keys = list(dict.fromkeys(row.key for row in batch))
        await outbox.lock_keys(connection, keys)
        exist = await wanted(connection, keys)
        await self._write([key for key in keys if key in exist], [key for key in keys if key not in exist])
        await outbox.done(connection, [row.id for row in batch])
        await _move_revisions(connection, batch)


async def _move_revisions(connection: AsyncConnection, batch: Sequence[Pending]) -> None:
    """Give fresh revisions to what may have lost an allow, so that no cached one outlives it."""
    taking = [row for row in batch if row.takes_away]
    if not taking:
        return
    within: set[UUID] = {row.warehouse_id for row in taking if row.warehouse_id is not None}
    if within:
        for id in sorted(within):
            await connection.execute(update(warehouses).where(warehouses.c.id == id).values(revision=uuid7()))
    if any(row.warehouse_id is None for row in taking):
        await connection.execute(update(server).values(revision=uuid7()))
