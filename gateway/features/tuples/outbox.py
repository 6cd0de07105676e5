# SPDX-License-Identifier: Apache-2.0
"""Background loops: deliver the outbox, record expired grants, and complete deletions of users."""

from __future__ import annotations

import asyncio
import random

import structlog
from uuid_utils.compat import uuid7

from gateway.access.actor import Actor
from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable
from gateway.access.events.unrequested_events import event_of_expired
from gateway.db.engine.database import Database
from gateway.db.tuples import outbox, ownership, user_deletion_cleanup
from gateway.db.tuples.delivery import TupleDelivery

_log = structlog.get_logger("tasks.outbox")

_EXPIRED_AT_ONCE = 100
_TASK = Actor.system("grant_expiry").id


async def run_delivery(delivery: TupleDelivery, database: Database, *, every: float = 1.0) -> None:
    """Deliver pending tuples until the process ends."""
    while True:
        try:
            # Counted first: finding the due keys needs a transaction, and mostly there are none.
            while (pending := await outbox.read_count(database)) and await delivery.deliver_due():
                pass
            delivery.report_pending(pending)
        except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown) as outage:
            _log.warning("tuples.delivery_postponed", reason=str(outage))
        except Exception:
            # The loop must survive unexpected errors; they are logged with their traceback.
            _log.exception("tuples.delivery_failed")
        await asyncio.sleep(every)


async def run_expiry(delivery: TupleDelivery, database: Database, *, every: float = 10.0) -> None:
    """Move expired grants to the history, delete their tuples, and complete interrupted deletions of users, until the
    process ends.

    Expired grants have no effect from their expiry on; this only removes their rows and tuples.
    """
    while True:
        await asyncio.sleep(every * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
        try:
            while await expire_some(delivery, database):
                pass
            await user_deletion_cleanup.revoke_due(database, delivery)
        except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown) as outage:
            _log.warning("grants.expiry_postponed", reason=str(outage))
        except Exception:
            # As in `run_delivery`.
            _log.exception("grants.expiry_failed")


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
