# SPDX-License-Identifier: Apache-2.0
"""Write the events of a change into the outbox, as part of the last statement of its transaction.

Order per object: the statement assigns `sequence` while the transaction holds the locks of the rows it changed. A later
conflicting change of the same object waits for these locks, so its event has a higher number and is not visible before.
New objects need no lock, because nobody else knows their ids. Changes of one object that do not conflict, such as two
grants at the same time, have no order of their own; either order of their events is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gateway.access.event_building import events_of
from gateway.access.operation import Operation
from gateway.access.permit import Permit


@dataclass(frozen=True, slots=True)
class EventOutbox:
    """The names of the sinks that need the events, and the `source` of each event."""

    source: str
    sinks: tuple[str, ...]


def event_values(outbox: EventOutbox | None, permit: Permit[Operation]) -> dict[str, Any] | None:
    """Return the values of `EVENTS_CTE` for a change; None without an outbox or events.

    The events of one permit always have the same ids, so a repeated transaction writes them once.
    """
    if outbox is None:
        return None
    made = events_of(permit)
    if not made:
        return None
    return {
        "event_ids": [each.id for each in made],
        "event_types": [each.type for each in made],
        "event_keys": [each.key for each in made],
        "event_attributes": [msgspec.json.encode(each.attributes).decode() for each in made],
        "event_data": [each.data for each in made],
        "event_source": outbox.source,
        "event_sinks": list(outbox.sinks),
    }


#: Follows the CTE `moved` of the statement. It writes nothing if the decision must be made again.
EVENTS_CTE: Final = """,
    announced as (
        insert into events (id, at, type, source, key, attributes, data)
        select e.id, clock_timestamp(), e.type, cast(:event_source as text), e.key, cast(e.attributes as jsonb), e.data
        from moved cross join lateral unnest(
            cast(:event_ids as uuid[]), cast(:event_types as text[]), cast(:event_keys as text[]),
            cast(:event_attributes as text[]), cast(:event_data as bytea[]))
            with ordinality as e(id, type, key, attributes, data, place)
        where not moved.it
        order by e.place
        on conflict (id) do nothing
        returning sequence),
    waiting as (
        insert into event_deliveries (sink, sequence)
        select sink, sequence from announced cross join unnest(cast(:event_sinks as text[])) as sink)
"""
