# SPDX-License-Identifier: Apache-2.0
"""Statements on the delivery of events: what waits for a sink, what was delivered, refused, replayed and removed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

import msgspec
from sqlalchemy import text

from gateway.db.engine import Connection, Database
from gateway.db.rows import AnyRow


class StoredEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of the outbox. `sequence` is its place in the order of delivery."""

    sequence: int
    id: UUID
    at: datetime
    type: str
    source: str
    key: str
    attributes: dict[str, str]
    data: bytes


class SinkState(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for one sink, the time of its oldest waiting event, and the number of events it refused."""

    sink: str
    waiting: int
    oldest: datetime | None
    dead_letters: int


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a sink refused for good."""

    sink: str
    sequence: int
    id: UUID
    type: str
    key: str
    at: datetime
    reason: str


@asynccontextmanager
async def sole_deliverer(database: Database, sink: str) -> AsyncIterator[Connection | None]:
    """Hold the lock of the sink in the block, and yield the connection that has it; None if another process has it.

    Each statement on the connection commits by itself, so no transaction is open while the sink is asked. The lock ends
    with the connection. A process that loses it sends a batch again at most: the ids of events show duplicates. Raises
    DatabaseUnavailable.
    """
    async with database.autocommit() as connection:
        try:
            locked = (await connection.execute(_LOCK, {"sink": sink})).scalar_one()
            yield connection if locked else None
            if locked:
                await connection.execute(_UNLOCK, {"sink": sink})
        except BaseException:
            # Closing the connection releases its lock in any state.
            await connection.invalidate()
            raise


async def something_waits(database: Database, sink: str) -> bool:
    """Return True if an event waits for the sink. Raises DatabaseUnavailable."""
    async with database.read() as connection:
        return bool((await connection.execute(_ANY, {"sink": sink})).scalar_one())


async def waiting(connection: Connection, sink: str, *, limit: int, most_bytes: int) -> list[StoredEvent]:
    """Return the first events that wait for the sink, in order.

    The data has at most `most_bytes` together, but there is at least one event.
    """
    rows = (await connection.execute(_WAITING, {"sink": sink, "limit": limit, "bytes": most_bytes})).all()
    return [_event(row) for row in rows]


async def delivered(connection: Connection, sink: str, sequences: Sequence[int]) -> None:
    """Remove events from what waits for the sink."""
    await connection.execute(_DELIVERED, {"sink": sink, "sequences": list(sequences)})


async def refuse(connection: Connection, sink: str, sequence: int, reason: str) -> None:
    """Make a waiting event a dead letter of the sink, in one statement."""
    await connection.execute(_REFUSE, {"sink": sink, "sequence": sequence, "reason": reason[:1000]})


async def states(connection: Connection, sinks: Sequence[str] = ()) -> list[SinkState]:
    """Return the state of `sinks`, and of all sinks for which events wait or that refused some, by name."""
    rows = (await connection.execute(_STATES, {"sinks": list(sinks)})).all()
    return [
        SinkState(sink=row.sink, waiting=row.waiting, oldest=row.oldest, dead_letters=row.dead_letters) for row in rows
    ]


async def recent(connection: Connection, *, after: int, limit: int) -> list[StoredEvent]:
    """Return stored events with a higher sequence than `after`, in order."""
    return [_event(row) for row in (await connection.execute(_RECENT, {"after": after, "limit": limit})).all()]


async def dead_letters(connection: Connection, *, sink: str | None, limit: int) -> list[DeadLetter]:
    """Return dead letters of one sink or of all, in the order of the events."""
    rows = (await connection.execute(_DEAD_LETTERS, {"sink": sink, "limit": limit})).all()
    return [DeadLetter(**row._mapping) for row in rows]


async def replay(
    connection: Connection, sinks: Sequence[str], *, sequence: int | None = None, since: datetime | None = None
) -> int:
    """Let all stored events from a sequence or time on wait for the sinks again. Return the number of deliveries."""
    parameters = {"sinks": list(sinks), "sequence": sequence, "since": since}
    return (await connection.execute(_REPLAY, parameters)).rowcount


async def retry_dead_letters(connection: Connection, sink: str) -> int:
    """Let the dead letters of a sink wait for it again. Return their number."""
    return (await connection.execute(_RETRY, {"sink": sink})).rowcount


async def forget(connection: Connection, sink: str) -> int:
    """Remove what waits for a sink, and its dead letters. Return the number of waiting events."""
    await connection.execute(text("delete from event_dead_letters where sink = :sink"), {"sink": sink})
    return (await connection.execute(text("delete from event_deliveries where sink = :sink"), {"sink": sink})).rowcount


async def remove_old(connection: Connection, *, keep_seconds: float, limit: int) -> int:
    """Remove events older than `keep_seconds` that no sink needs or refused. Return their number, at most `limit`."""
    return (await connection.execute(_REMOVE_OLD, {"keep": keep_seconds, "limit": limit})).rowcount


def _event(row: AnyRow) -> StoredEvent:
    return StoredEvent(
        sequence=row.sequence,
        id=row.id,
        at=row.at,
        type=row.type,
        source=row.source,
        key=row.key,
        attributes=row.attributes,
        data=bytes(row.data),
    )


_LOCK = text("select pg_try_advisory_lock(hashtextextended('lakegate events ' || cast(:sink as text), 0))")
_UNLOCK = text("select pg_advisory_unlock(hashtextextended('lakegate events ' || cast(:sink as text), 0))")
_ANY = text("select exists (select 1 from event_deliveries where sink = :sink)")
_WAITING = text(
    """
    select sequence, id, at, type, source, key, attributes, data from (
        select e.*, row_number() over (order by e.sequence) as place,
            sum(length(e.data)) over (order by e.sequence) as bytes
        from (select sequence from event_deliveries where sink = :sink order by sequence limit :limit) as first
        join events e using (sequence)) as counted
    where place = 1 or bytes <= :bytes
    order by sequence
    """
)
_DELIVERED = text("delete from event_deliveries where sink = :sink and sequence = any(cast(:sequences as bigint[]))")
_REFUSE = text(
    """
    with gone as (
        delete from event_deliveries where sink = :sink and sequence = :sequence returning sink, sequence)
    insert into event_dead_letters (sink, sequence, at, reason)
    select sink, sequence, clock_timestamp(), cast(:reason as text) from gone
    on conflict (sink, sequence) do update set at = excluded.at, reason = excluded.reason
    """
)
_STATES = text(
    """
    with named as (
        select sink from unnest(cast(:sinks as text[])) as sink
        union select sink from event_deliveries union select sink from event_dead_letters)
    select sink,
        (select count(*) from event_deliveries d where d.sink = named.sink) as waiting,
        (select e.at from events e where e.sequence =
            (select min(sequence) from event_deliveries d where d.sink = named.sink)) as oldest,
        (select count(*) from event_dead_letters l where l.sink = named.sink) as dead_letters
    from named order by sink
    """
)
_RECENT = text(
    """
    select sequence, id, at, type, source, key, attributes, data from events where sequence > :after
    order by sequence limit :limit
    """
)
_DEAD_LETTERS = text(
    """
    select l.sink, l.sequence, e.id, e.type, e.key, l.at, l.reason
    from event_dead_letters l join events e using (sequence)
    where cast(:sink as text) is null or l.sink = :sink
    order by l.sequence, l.sink limit :limit
    """
)
_REPLAY = text(
    """
    insert into event_deliveries (sink, sequence)
    select sink, e.sequence from events e cross join unnest(cast(:sinks as text[])) as sink
    where (cast(:sequence as bigint) is null or e.sequence >= :sequence)
        and (cast(:since as timestamptz) is null or e.at >= :since)
    on conflict do nothing
    """
)
_RETRY = text(
    """
    with gone as (delete from event_dead_letters where sink = :sink returning sink, sequence)
    insert into event_deliveries (sink, sequence) select sink, sequence from gone on conflict do nothing
    """
)
_REMOVE_OLD = text(
    """
    delete from events where sequence in (
        select e.sequence from events e
        where e.at < clock_timestamp() - make_interval(secs => cast(:keep as double precision))
            and not exists (select 1 from event_deliveries d where d.sequence = e.sequence)
            and not exists (select 1 from event_dead_letters l where l.sequence = e.sequence)
        order by e.at limit :limit)
    """
)
