# SPDX-License-Identifier: Apache-2.0
"""Delivering in the background what requests left in the outbox, and ending grants whose time is over and those that
come late to users who were deleted.
"""

from __future__ import annotations

import asyncio
import random

import structlog

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable, DecisionEngineUnavailable
from gateway.db import outbox, ownership, user_deletion_cleanup
from gateway.db.delivery import TupleDelivery
from gateway.db.engine import Database

_log = structlog.get_logger("tasks.outbox")

_EXPIRED_AT_ONCE = 100


async def run_delivery(delivery: TupleDelivery, database: Database, *, every: float = 1.0) -> None:
    """Deliver what waits, for as long as the process lives."""
    while True:
        try:
            while await delivery.deliver_due():
                pass
            async with database.read() as connection:
                delivery.tell_pending(await outbox.count(connection))
        except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown) as outage:
            _log.warning("tuples.delivery_postponed", reason=str(outage))
        except Exception:
            # A background task must outlive every surprise; the surprise itself is told in full.
            _log.exception("tuples.delivery_failed")
        await asyncio.sleep(every)


async def run_expiry(delivery: TupleDelivery, database: Database, *, every: float = 10.0) -> None:
    """Put grants whose time is over into the history and remove their tuples, for as long as the process lives.

    They gave nothing any more from the instant they ended; this tidies up. And finish deletions of users that did not
    come to their end.
    """
    while True:
        await asyncio.sleep(every * random.uniform(0.5, 1.5))  # noqa: S311 - spreads load, protects nothing
        try:
            while await expire_some(delivery, database):
                pass
            await user_deletion_cleanup.take_away_due(database, delivery)
        except (DecisionEngineUnavailable, DatabaseUnavailable, CommitUnknown) as outage:
            _log.warning("grants.expiry_postponed", reason=str(outage))
        except Exception:
            # As above.
            _log.exception("grants.expiry_failed")


async def expire_some(delivery: TupleDelivery, database: Database) -> bool:
    """End some grants whose time is over; False when there were none."""
    async with database.transaction() as connection:
        pending = await ownership.record_expired(connection, limit=_EXPIRED_AT_ONCE)
    await delivery.deliver_or_leave(pending)
    return bool(pending)
