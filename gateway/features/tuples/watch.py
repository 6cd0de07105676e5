# SPDX-License-Identifier: Apache-2.0
"""Watch OpenFGA's change feed, so that changes which bypass the gateway are detected within a second.

One process at a time holds the watch, by a lease in a database row. If it dies, another process takes over after the
lease expires. Each read starts a few seconds before the newest change seen, because OpenFGA numbers a change when its
write begins and shows it when the write ends. The overlap also detects that the store was emptied or restored: then the
newest change is missing, and a full comparison runs.

Further background loops here deliver the outbox, record expired grants, and complete deletions of users.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from uuid_utils.compat import uuid7

from gateway.access.actor import Actor
from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable
from gateway.access.events.unrequested_events import event_of_expired
from gateway.access.tuples import TupleKey
from gateway.db.engine.database import Database
from gateway.db.tuples import outbox, ownership, user_deletion_cleanup
from gateway.db.tuples.delivery import TupleDelivery
from gateway.db.warehouses import drift
from gateway.db.warehouses.drift import Watch
from gateway.features.tuples.drift import OUTAGES, DriftKeeper, DriftObserver, new_run_id
from gateway.features.tuples.reconcile import Reconcile
from gateway.fga.changes import Change, changes_since
from gateway.fga.client import FgaClient
from gateway.fga.relationships import StoredTuple, read_back
from gateway.iceberg.errors import CatalogError

_outbox_log = structlog.get_logger("tasks.outbox")

_EXPIRED_AT_ONCE = 100
_TASK = Actor.system("grant_expiry").id


async def run_delivery(delivery: TupleDelivery, database: Database, *, every: float = 1.0) -> None:
    """Deliver pending tuples until the process ends."""
    while True:
        try:
            # The rows are counted first: finding the due keys needs a transaction, and mostly the outbox is empty.
            while (pending := await outbox.read_count(database)) and await delivery.deliver_due():
                pass
            delivery.report_pending(pending)
        except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown) as outage:
            _outbox_log.warning("tuples.delivery_postponed", reason=str(outage))
        except Exception:
            # The loop must survive unexpected errors; they are logged with their traceback.
            _outbox_log.exception("tuples.delivery_failed")
        await asyncio.sleep(every)


async def run_expiry(delivery: TupleDelivery, database: Database, *, every: float = 10.0) -> None:
    """Move expired grants to the history, delete their tuples, and complete interrupted deletions of users, until the
    process ends.

    A grant has no effect after its expiry; the loop only removes its row and tuple.
    """
    while True:
        await asyncio.sleep(every * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
        try:
            while await expire_some(delivery, database):
                pass
            await user_deletion_cleanup.revoke_due(database, delivery)
        except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown) as outage:
            _outbox_log.warning("grants.expiry_postponed", reason=str(outage))
        except Exception:
            # The loop must survive unexpected errors; they are logged with their traceback.
            _outbox_log.exception("grants.expiry_failed")


async def expire_some(delivery: TupleDelivery, database: Database) -> bool:
    """Record and announce a batch of expired grants. Return False if there were none."""
    run = f"task-{uuid7()}"
    async with database.transaction() as connection:
        pending, rows = await ownership.record_expired(connection, limit=_EXPIRED_AT_ONCE)
        if rows and database.announces:
            expired = await ownership.describe_expired(connection, rows)
            await database.announce(connection, [event_of_expired(each, task=_TASK, trace_id=run) for each in expired])
    await delivery.deliver_or_defer(pending)
    return bool(pending)


_log = structlog.get_logger("tasks.watch")

TASK: Final = "watch_drift"
_CHUNK: Final = 1000
#: The lease lasts this many intervals, and at least this many seconds.
_LEASE_INTERVALS: Final = 4
_LEASE_SECONDS: Final = 3.0


class DriftWatch:
    """The watch of one process. `every` is the interval of reads. Each read starts at the newest known change minus
    `overlap`, which must exceed the duration of the longest OpenFGA write. Both are in seconds.
    """

    def __init__(
        self,
        *,
        database: Database,
        client: FgaClient,
        keeper: DriftKeeper,
        reconcile: Reconcile,
        observer: DriftObserver,
        every: float,
        overlap: float,
    ) -> None:
        self._database = database
        self._client = client
        self._keeper = keeper
        self._reconcile = reconcile
        self._observer = observer
        self._every = every
        self._overlap = timedelta(seconds=overlap)
        self._lease = max(_LEASE_SECONDS, _LEASE_INTERVALS * every)
        self._holder = uuid7()
        self._holds = False
        self._verified: dict[str, datetime] = {}
        self._seen_until: datetime | None = None

    async def run(self) -> None:
        """Watch until the process ends."""
        failing = False
        try:
            while True:
                started = time.monotonic()
                try:
                    await self.look()
                    failing = False
                except (*OUTAGES, CatalogError) as outage:
                    # An outage is logged once, not with every attempt.
                    if not failing:
                        _log.warning("drift.watch_postponed", reason=str(outage))
                    failing = True
                except Exception:
                    # The watch must survive unexpected errors; they are logged with their traceback.
                    _log.exception("drift.watch_failed")
                await asyncio.sleep(max(self._every - (time.monotonic() - started), self._every / 10))
        finally:
            await self._release_lease()

    async def look(self) -> bool:
        """Read new changes and repair drift. Return False if another process holds the watch.

        Raises the errors of outages and the door's refusals. Changes that were not processed are read again.
        """
        watch = await self._acquire_lease()
        if watch is None:
            return False
        if watch.seen_until != self._seen_until:
            # Another process held the watch, or the database was restored: the cache of this process is incomplete.
            self._verified.clear()
            self._seen_until = watch.seen_until
        watch = await self._same_store(watch)
        watch = await self._read_on(watch)
        if watch.compare_all:
            _log.warning("drift.comparison_started", store=watch.store_id)
            await self._reconcile.run(repair=True, beat=self._renew_lease)
            await self._save(replace(watch, compare_all=False))
        self._observer.drift_checked(time.time())
        return True

    async def _same_store(self, watch: Watch) -> Watch:
        """Reset the watch if OpenFGA's store is not the one that was watched. Return the current state of the watch."""
        store = self._client.store_id
        if watch.store_id == store:
            return watch
        self._verified.clear()
        replaced = watch.store_id is not None
        if replaced:
            _log.error("drift.store_replaced", before=watch.store_id, store=store)
        fresh = Watch(store_id=store, seen_until=None, last_change=None, compare_all=replaced or watch.compare_all)
        await self._save(fresh)
        return fresh

    async def _read_on(self, watch: Watch) -> Watch:
        """Verify all changes since the last read, in chunks. Return the watch with its new position."""
        # OpenFGA rejects a start in the future, which a store restored on a host with another clock may have.
        start = None if watch.seen_until is None else min(watch.seen_until, datetime.now(UTC)) - self._overlap
        last, last_seen_again = watch.last_change, watch.last_change is None
        chunk: list[Change] = []
        async for change in changes_since(self._client, start):
            last_seen_again = last_seen_again or _change_id(change) == last
            chunk.append(change)
            if len(chunk) == _CHUNK:
                watch = await self._verify(watch, chunk)
                chunk = []
        watch = await self._verify(watch, chunk)
        if last_seen_again:
            return watch
        _log.error("drift.history_lost", store=watch.store_id)
        self._verified.clear()
        fresh = Watch(store_id=watch.store_id, seen_until=None, last_change=None, compare_all=True)
        await self._save(fresh)
        return fresh

    async def _verify(self, watch: Watch, changes: Sequence[Change]) -> Watch:
        new = [change for change in changes if _change_id(change) not in self._verified]
        if not new:
            return watch
        suspects, unmapped = await self._suspects(new)
        verified = await self._keeper.verify(suspects, unmapped)
        # Expired tuples are not drift. The expiry loop deletes them.
        if findings := [each for each in verified if each.is_drift]:
            await self._keeper.repair(findings, task=TASK, run=new_run_id())
        newest = max(new, key=lambda change: change.timestamp)
        if watch.seen_until is None or newest.timestamp >= watch.seen_until:
            watch = replace(watch, seen_until=newest.timestamp, last_change=_change_id(newest))
        await self._save(watch)
        self._cache(new)
        return watch

    async def _suspects(self, changes: Sequence[Change]) -> tuple[list[TupleKey], list[StoredTuple]]:
        """Return (keys that may differ from the rows, existing tuples that are not keys of the gateway).

        A key that changed once, to the state that the rows require, is correct. A key that changed several times is
        read, because the order of the feed is not the order of the writes.
        """
        stored = [(change, read_back(change.tuple_key)) for change in changes]
        times: dict[TupleKey, int] = {}
        for _, each in stored:
            if each.key is not None:
                times[each.key] = times.get(each.key, 0) + 1
        desired = await self._keeper.desired(list(times))
        suspects = [
            each.key
            for change, each in stored
            if each.key is not None and not (times[each.key] == 1 and _matches_desired(change, each, desired))
        ]
        unmapped = {(each.raw.user, each.raw.relation, each.raw.object): each for _, each in stored if each.key is None}
        present: list[StoredTuple] = []
        for user, relation, on in unmapped:
            present += [read_back(found) async for found in self._client.read(user=user, relation=relation, object=on)]
        return list(dict.fromkeys(suspects)), present

    def _cache(self, changes: Sequence[Change]) -> None:
        """Remember the changes that were verified, because the next reads return them again."""
        self._verified.update((_change_id(change), change.timestamp) for change in changes)
        if self._seen_until is not None:
            old = self._seen_until - 2 * self._overlap
            self._verified = {change_id: at for change_id, at in self._verified.items() if at >= old}

    async def _acquire_lease(self) -> Watch | None:
        watch = await drift.acquire_lease(self._database, self._holder, seconds=self._lease, holds=self._holds)
        self._holds = watch is not None
        return watch

    async def _renew_lease(self) -> None:
        await self._acquire_lease()

    async def _save(self, watch: Watch) -> None:
        async with self._database.transaction() as connection:
            await drift.store_position(connection, self._holder, watch)
        self._seen_until = watch.seen_until

    async def _release_lease(self) -> None:
        try:
            async with asyncio.timeout(1), self._database.transaction() as connection:
                await drift.release_lease(connection, self._holder)
        except (*OUTAGES, TimeoutError) as outage:
            _log.info("drift.watch_kept", reason=str(outage))


def _matches_desired(change: Change, stored: StoredTuple, desired: dict[TupleKey, datetime | None]) -> bool:
    if not change.written:
        return stored.key not in desired
    if stored.key is None or stored.key not in desired:
        return False
    return stored.plain and stored.expires_at == desired[stored.key]


def _change_id(change: Change) -> str:
    """Return a unique text for a change."""
    key = change.tuple_key
    return f"{change.timestamp.isoformat()} {change.operation} {key.user} {key.relation} {key.object}"
