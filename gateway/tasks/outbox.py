# SPDX-License-Identifier: Apache-2.0
"""Delivering in the background what requests left in the outbox."""

from __future__ import annotations

import asyncio

import structlog

from gateway.access.outage import DatabaseUnavailable, DecisionEngineUnavailable
from gateway.db import outbox
from gateway.db.delivery import TupleDelivery
from gateway.db.engine import Database

_log = structlog.get_logger("tasks.outbox")


async def run_delivery(delivery: TupleDelivery, database: Database, *, every: float = 1.0) -> None:
    """Deliver what waits, for as long as the process lives."""
    while True:
        try:
            while await delivery.deliver_due():
                pass
            async with database.read() as connection:
                delivery.tell_pending(await outbox.count(connection))
        except (DecisionEngineUnavailable, DatabaseUnavailable) as outage:
            _log.warning("tuples.delivery_postponed", reason=str(outage))
        except Exception:
            # A background task must outlive every surprise; the surprise itself is told in full.
            _log.exception("tuples.delivery_failed")
        await asyncio.sleep(every)
