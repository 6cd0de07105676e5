# SPDX-License-Identifier: Apache-2.0
"""Write the events of a change into the database, from where they are delivered, with the last statement of the change.

Events of one object are ordered. The statement assigns `sequence` while the transaction holds the locks of the rows it
changed. A later conflicting change of the same object waits for these locks, so its event has a higher number and is
not visible before. New objects need no lock, because no other request knows their ids. Changes of one object that do
not conflict, such as two grants at the same time, have no order of their own; either order of their events is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.audit.audit_record import IssuedCredential
from gateway.access.door.permit import Permit
from gateway.access.events.event_building import NewEvent, event_of_issued, events_of
from gateway.access.operation import Operation


@dataclass(frozen=True, slots=True)
class EventOutbox:
    """The names of the sinks that receive events, and the `source` attribute of each event.

    With `credentials_vended`, each storage credential that a principal receives also has an event.
    """

    source: str
    sinks: tuple[str, ...]
    credentials_vended: bool = False


def event_values(outbox: EventOutbox | None, permit: Permit[Operation]) -> dict[str, Any] | None:
    """Return the values of `EVENTS_CTE` for a change. Return None if there is no outbox, or if the change has no
    events.

    The events of one permit always have the same ids, so a repeated transaction writes them only once.
    """
    if outbox is None:
        return None
    made = events_of(permit)
    return _values(outbox, made) if made else None


def issued_values(outbox: EventOutbox | None, issued: Sequence[IssuedCredential]) -> dict[str, Any] | None:
    """Return the values of `ISSUED_CTE` for these credentials.

    Return None if the outbox takes no events of credentials.
    """
    if outbox is None or not outbox.credentials_vended or not issued:
        return None
    return _values(outbox, [event_of_issued(each) for each in issued])


def _values(outbox: EventOutbox, made: Sequence[NewEvent]) -> dict[str, Any]:
    return {
        "event_ids": [each.id for each in made],
        "event_types": [each.type for each in made],
        "event_keys": [each.key for each in made],
        "event_attributes": [msgspec.json.encode(each.attributes).decode() for each in made],
        "event_data": [each.data for each in made],
        "event_source": outbox.source,
        "event_sinks": list(outbox.sinks),
    }


def _cte(begin: str, condition: str) -> str:
    return f"""
    announced as (
        insert into events (id, at, type, source, key, attributes, data)
        select e.id, clock_timestamp(), e.type, cast(:event_source as text), e.key, cast(e.attributes as jsonb), e.data
        from {begin} unnest(
            cast(:event_ids as uuid[]), cast(:event_types as text[]), cast(:event_keys as text[]),
            cast(:event_attributes as text[]), cast(:event_data as bytea[]))
            with ordinality as e(id, type, key, attributes, data, place)
        {condition}
        order by e.place
        on conflict (id) do nothing
        returning sequence),
    waiting as (
        insert into event_deliveries (sink, sequence)
        select sink, sequence from announced cross join unnest(cast(:event_sinks as text[])) as sink)
"""  # noqa: S608 - composed of constants; every value is a bound parameter


#: SQL that follows the CTE `moved` of the statement. No event is written if the decision must be made again.
EVENTS_CTE: Final = "," + _cte("moved cross join lateral", "where not moved.it")

_ANNOUNCE: Final = text("with" + _cte("", "") + "select 1")


async def announce(connection: AsyncConnection, outbox: EventOutbox, events: Sequence[NewEvent]) -> None:
    """Write the events of a change that has no permit, in the transaction of the change.

    Existing events are skipped.
    """
    if events:
        await connection.execute(_ANNOUNCE, _values(outbox, events))


#: SQL that follows the CTE `registered`, and writes the event of each new credential. A credential from the cache
#: already has its event.
ISSUED_CTE: Final = "," + _cte("", "")
