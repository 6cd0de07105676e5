# SPDX-License-Identifier: Apache-2.0
"""Use cases of event delivery, for clients and the command line: state of the sinks, dead letters, and replay.

A dead letter is an event that a sink refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from uuid_utils.compat import uuid7

from gateway.access.door.door import Door
from gateway.access.door.permit import Permit
from gateway.access.management_errors import EventSinkNotFound
from gateway.access.operations.events import (
    EventDeadLetter,
    EventDeadLetterList,
    EventSinkList,
    EventSinkState,
    ListEventDeadLetters,
    ListEventSinks,
    ReplayEvents,
    RetryEventDeadLetters,
)
from gateway.access.operations.tasks import ForgetEventSink, ReplayEventsByCommand, RetryDeadLettersByCommand
from gateway.db.engine.database import Database
from gateway.db.warehouses import event_deliveries
from gateway.features.kit import Kit, UseCases, admitted
from gateway.iceberg.errors import BadRequestException, InvalidPaginationToken


class EventDeliveries(UseCases):
    """State and control of the delivery. `sinks` are the names of the configured sinks."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._sinks = kit.sinks

    async def sinks(self, _: Permit[ListEventSinks]) -> EventSinkList:
        """Return the state of the configured sinks, and of other sinks with waiting events or dead letters."""
        found = {state.sink: state for state in await event_deliveries.states(self._database)}
        states = []
        for name in sorted({*self._sinks, *found}):
            state = found.get(name)
            states.append(
                EventSinkState(
                    name=name,
                    configured=name in self._sinks,
                    waiting=state.waiting if state else 0,
                    dead_letters=state.dead_letters if state else 0,
                    oldest_seconds=state.oldest_seconds if state else 0.0,
                )
            )
        return EventSinkList(sinks=states)

    async def dead_letters(self, permit: Permit[ListEventDeadLetters]) -> EventDeadLetterList:
        """Return a page of dead letters. Raises InvalidPaginationToken."""
        operation = permit.operation
        page = self._page_of(operation, _position)
        after, after_sink = page.after or (0, "")
        found = await event_deliveries.dead_letters(
            self._database, sink=operation.sink, after=after, after_sink=after_sink, limit=page.limit
        )
        shown = [
            EventDeadLetter(
                sink=each.sink,
                sequence=each.sequence,
                id=each.id,
                type=each.type,
                key=each.key,
                refused_at=each.at,
                reason=each.reason,
            )
            for each in page.rows(found)
        ]
        more = page.next_token(found, lambda each: f"{each.sequence}.{each.sink}")
        return EventDeadLetterList(dead_letters=shown, next_page_token=more)

    async def replay(self, permit: Permit[ReplayEvents]) -> None:
        """Deliver stored events again. Raises EventSinkNotFound, and BadRequestException unless the request has exactly
        one start.
        """
        request = permit.operation.request
        if (request.from_sequence is None) == (request.from_time is None):
            raise BadRequestException("Exactly one of from-sequence and from-time is required.")
        names = self._sinks if request.sink is None else (self._known(request.sink),)
        async with self._database.change(permit) as connection:
            await event_deliveries.replay(connection, names, sequence=request.from_sequence, time=request.from_time)

    async def retry(self, permit: Permit[RetryEventDeadLetters]) -> None:
        """Deliver the dead letters of a sink again. Raises EventSinkNotFound."""
        name = self._known(permit.operation.request.sink)
        async with self._database.change(permit) as connection:
            await event_deliveries.retry_dead_letters(connection, name)

    def _known(self, name: str) -> str:
        if name not in self._sinks:
            known = ", ".join(self._sinks) or "none"
            raise EventSinkNotFound(f"No event sink in the settings has the name {name!r}. Configured sinks: {known}.")
        return name


def _position(token: str) -> tuple[int, str]:
    """Return (sequence, sink) of the last dead letter on the previous page. Raises InvalidPaginationToken."""
    sequence, _, sink = token.partition(".")
    if not (sequence.isascii() and sequence.isdigit() and len(sequence) < 19) or "\0" in sink:
        raise InvalidPaginationToken("The page token is not one of this list. Begin again without a token.")
    return int(sequence), sink


TASK: Final = "event_commands"


async def replay(
    database: Database, door: Door, sinks: Sequence[str], *, sequence: int | None, time: datetime | None
) -> int:
    """Schedule all stored events since `sequence` or `time` for delivery to the sinks again. Return the number of
    deliveries.
    """
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
    """Schedule all dead letters of the sinks for delivery again. Return their number."""
    async with (
        admitted(door, TASK, str(uuid7()), RetryDeadLettersByCommand(sinks=tuple(sinks))) as permit,
        database.change(permit) as connection,
    ):
        count = sum([await event_deliveries.retry_dead_letters(connection, sink) for sink in sinks])
        permit.pending_audit.add_details(events=str(count))
    return count


async def forget(database: Database, door: Door, sink: str) -> int:
    """Delete the waiting events and dead letters of a sink. Return their number."""
    async with (
        admitted(door, TASK, str(uuid7()), ForgetEventSink(sink)) as permit,
        database.change(permit) as connection,
    ):
        count = await event_deliveries.forget(connection, sink)
        permit.pending_audit.add_details(events=str(count))
    return count
