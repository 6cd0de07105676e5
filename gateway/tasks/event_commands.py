# SPDX-License-Identifier: Apache-2.0
"""Change the outbox of events by the command line: `lakegate events replay`, `dead-letters --retry` and `forget`.

Each change commits together with its audit record. Each function raises the error of a policy refusal and the errors of
outages.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from uuid_utils.compat import uuid7

from gateway.access.door import Door
from gateway.access.operations.tasks import ForgetEventSink, ReplayEventsByCommand, RetryDeadLettersByCommand
from gateway.db import event_deliveries
from gateway.db.engine import Database
from gateway.tasks.system_admission import admitted

TASK: Final = "event_commands"


async def replay(
    database: Database, door: Door, sinks: Sequence[str], *, sequence: int | None, time: datetime | None
) -> int:
    """Let all stored events from `sequence` or `time` on wait for the sinks again. Return the number of deliveries."""
    start = str(sequence) if time is None else time.isoformat()
    operation = ReplayEventsByCommand(sinks=tuple(sinks), start=start)
    async with (
        admitted(door, TASK, str(uuid7()), operation) as permit,
        database.change(permit) as connection,
    ):
        count = await event_deliveries.replay(connection, sinks, sequence=sequence, time=time)
        permit.pending_audit.add_details(events=str(count))
    return count


async def retry(database: Database, door: Door, sinks: Sequence[str]) -> int:
    """Let all dead letters of the sinks wait again. Return their number."""
    async with (
        admitted(door, TASK, str(uuid7()), RetryDeadLettersByCommand(sinks=tuple(sinks))) as permit,
        database.change(permit) as connection,
    ):
        count = sum([await event_deliveries.retry_dead_letters(connection, sink) for sink in sinks])
        permit.pending_audit.add_details(events=str(count))
    return count


async def forget(database: Database, door: Door, sink: str) -> int:
    """Delete the waiting rows and dead letters of a sink. Return their number."""
    async with (
        admitted(door, TASK, str(uuid7()), ForgetEventSink(sink)) as permit,
        database.change(permit) as connection,
    ):
        count = await event_deliveries.forget(connection, sink)
        permit.pending_audit.add_details(events=str(count))
    return count
