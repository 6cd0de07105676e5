# SPDX-License-Identifier: Apache-2.0
"""What somebody who is deleted made at that very moment.

Whoever creates something owns it. A creation that began before its creator was deleted may be committed after the
grants of that user were swept, and who comes back with the same id would have what it gave, for ever.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

import structlog
from sqlalchemy import text

from gateway.access.tuples import Principal
from gateway.db.delivery import TupleDelivery
from gateway.db.engine import Database
from gateway.db.ownership import record_own_grants_gone

_log = structlog.get_logger("db.latecomers")

_LONGEST_WAIT_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.01

_NEXT: Final = text("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
_OLDEST: Final = text("select pg_snapshot_xmin(pg_current_snapshot())::text::bigint")


async def take_away(database: Database, delivery: TupleDelivery, user: Principal, *, by: str) -> None:
    """End what the deleted user was given by changes of their own that were under way.

    Call it when the deletion was delivered. By then the revisions have moved, so a change that begins later is decided
    again before its COMMIT and refused (`standing.py`), and those that began earlier are waited for, five seconds at
    most. Raises DecisionEngineUnavailable, DatabaseUnavailable and CommitUnknown.
    """
    if not await _earlier_ones_ended(database):
        _log.warning("latecomers.not_waited_for", user=user.id)
    async with database.transaction() as connection:
        pending = await record_own_grants_gone(connection, user, by=by)
    await delivery.deliver(pending)


async def _earlier_ones_ended(database: Database) -> bool:
    """Wait until every change that is under way now has ended; False when one still has not."""
    last = time.monotonic() + _LONGEST_WAIT_SECONDS
    async with database.read() as connection:
        begun_before = (await connection.execute(_NEXT)).scalar_one()
        while (await connection.execute(_OLDEST)).scalar_one() < begun_before:
            if time.monotonic() >= last:
                return False
            await asyncio.sleep(_PAUSE_SECONDS)
    return True
