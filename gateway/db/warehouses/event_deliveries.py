# SPDX-License-Identifier: Apache-2.0
"""Statements on events that wait for sinks, on dead letters (events that a sink refused), and on events kept for a
replay.

Each waiting event has a row for each sink, and no position is stored. So an event whose transaction commits late is
delivered by a later run and never skipped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.engine.database import Database
from gateway.db.pools.compiled_reads import DirectRead

_CLASS: Final = 0x1A50
_KEEPING: Final = 0
"""Number of the lock that a replay and the deletion of old events share. Sinks have the hash of their name."""
_COUNTING_CLASS: Final = 0x1A52
"""Class of the locks of the processes that count. Their numbers are hashes of the names of gateways."""

_HAS_WAITING = DirectRead(
    text("select exists (select from event_deliveries where sink = cast(:sink as text)) as waiting")
)
# A machine that loses its power or its network does not close its connection. Without these settings, its lock would
# stay for two hours.
_TRY = text(
    "select pg_try_advisory_lock(:class, hashtext(:sink)), set_config('tcp_keepalives_idle', '15', false), "
    "set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)"
)
_UNLOCK = text("select pg_advisory_unlock(:class, hashtext(:sink))")
_BATCH = text(
    "select e.sequence, e.id, e.at, e.type, e.source, e.key, e.attributes, e.data, cast(d.xmin as text) "
    "from event_deliveries d "
    "join events e using (sequence) where d.sink = :sink order by d.sequence limit :limit"
)
# If events are replayed during a call of the sink, their rows have another version and are not removed: they are sent
# again, in order. Otherwise the replayed earlier events of a key would arrive after its later events.
_REMOVE = text(
    "delete from event_deliveries d using unnest(cast(:sequences as bigint[]), cast(:versions as text[])) "
    "as sent (sequence, version) "
    "where d.sink = :sink and d.sequence = sent.sequence and cast(d.xmin as text) = sent.version"
)
_REFUSE = text(
    "with refused as (delete from event_deliveries where sink = :sink and sequence = :sequence "
    "and cast(xmin as text) = :version returning sequence) "
    "insert into event_dead_letters (sink, sequence, at, reason) "
    "select :sink, sequence, clock_timestamp(), :reason from refused "
    "on conflict (sink, sequence) do update set at = excluded.at, reason = excluded.reason"
)
_STATES = text(
    "select sink, sum(waiting)::bigint as waiting, sum(dead)::bigint as dead, "
    "coalesce(extract(epoch from clock_timestamp() - min(oldest)), 0)::float8 as oldest from ("
    "select d.sink, count(*) as waiting, 0 as dead, "
    "(select at from events where sequence = min(d.sequence)) as oldest from event_deliveries d group by d.sink "
    "union all select sink, 0, count(*), null from event_dead_letters group by sink) counted "
    "group by sink order by sink"
)
_DEAD_LETTERS = text(
    "select l.sink, l.sequence, e.id, e.type, e.key, l.at, l.reason from event_dead_letters l join events e "
    "using (sequence) where (cast(:sink as text) is null or l.sink = :sink) "
    "and (l.sequence, l.sink) > (:after, :after_sink) "
    "order by l.sequence, l.sink limit :limit"
)
_KEPT = text("select sequence, id, at, type, key from events where sequence > :after order by sequence limit :limit")
_LOCK_KEEPING = text("select pg_advisory_xact_lock(:class, :number)")
_TRY_KEEPING = text("select pg_try_advisory_xact_lock(:class, :number)")
_REPLAY = text(
    "with again as (insert into event_deliveries (sink, sequence) select s.sink, e.sequence from events e "
    "cross join unnest(cast(:sinks as text[])) as s (sink) "
    "where (cast(:sequence as bigint) is null or e.sequence >= :sequence) "
    "and (cast(:time as timestamptz) is null or e.at >= :time) "
    "on conflict (sink, sequence) do update set sequence = excluded.sequence returning xmax = 0 as added) "
    "select count(*) filter (where added) from again"
)
_RETRY = text(
    "with again as (delete from event_dead_letters where sink = :sink returning sequence) "
    "insert into event_deliveries (sink, sequence) select :sink, sequence from again on conflict do nothing"
)
_FORGET_WAITING = text("delete from event_deliveries where sink = :sink")
_FORGET_DEAD = text("delete from event_dead_letters where sink = :sink")
_OLD_DEAD = text(
    "delete from event_dead_letters where (sink, sequence) in (select sink, sequence from event_dead_letters "
    "where at < clock_timestamp() - cast(:age as interval) limit :limit)"
)
_OLD_EVENTS = text(
    "delete from events where sequence in (select e.sequence from events e "
    "where e.at < clock_timestamp() - cast(:age as interval) "
    "and not exists (select from event_deliveries d where d.sequence = e.sequence) "
    "and not exists (select from event_dead_letters l where l.sequence = e.sequence) "
    "order by e.at limit :limit)"
)


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of the outbox."""

    sequence: int
    id: UUID
    at: datetime
    type: str
    source: str
    key: str
    attributes: Mapping[str, str]
    data: bytes
    version: str
    """The version of its waiting row."""


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """The columns of a stored event that lists show."""

    sequence: int
    id: UUID
    at: datetime
    type: str
    key: str


@dataclass(frozen=True, slots=True)
class SinkState:
    """The backlog of one sink: waiting events, dead letters, and the age of the oldest waiting event in seconds."""

    sink: str
    waiting: int
    dead_letters: int
    oldest_seconds: float


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that a sink refused."""

    sink: str
    sequence: int
    id: UUID
    type: str
    key: str
    at: datetime
    reason: str


async def has_waiting(database: Database, sink: str) -> bool:
    """Return True if an event waits for the sink. Raises DatabaseUnavailable."""
    return bool((await database.read_one(_HAS_WAITING, {"sink": sink}))[0])


def locked_sink(database: Database, sink: str) -> AbstractAsyncContextManager[AsyncConnection | None]:
    """Yield a connection that holds the lock of the sink; None if another process delivers to it.

    Each statement on the connection commits by itself, so no transaction is open while the sink is called. A lost
    connection releases the lock and makes the next statement fail. The server notices within half a minute that a
    machine has gone. Raises DatabaseUnavailable.
    """
    return _locked(database, {"class": _CLASS, "sink": sink})


def locked_count(database: Database, gateway: str) -> AbstractAsyncContextManager[AsyncConnection | None]:
    """Yield a connection that holds the lock for counting in this gateway, as `locked_sink` does."""
    return _locked(database, {"class": _COUNTING_CLASS, "sink": gateway})


@asynccontextmanager
async def _locked(database: Database, parameters: Mapping[str, Any]) -> AsyncIterator[AsyncConnection | None]:
    async with database.autocommit() as connection:
        if not (await connection.execute(_TRY, dict(parameters))).scalar_one():
            yield None
            return
        try:
            yield connection
            await connection.execute(_UNLOCK, dict(parameters))
        except BaseException:
            # Closing the connection releases its lock in any state of the transaction.
            await connection.invalidate()
            raise


async def batch(connection: AsyncConnection, sink: str, limit: int) -> list[StoredEvent]:
    """Return the first `limit` events that wait for the sink, in order."""
    return [StoredEvent(*row) for row in await connection.execute(_BATCH, {"sink": sink, "limit": limit})]


async def remove(connection: AsyncConnection, sink: str, stored: Sequence[StoredEvent]) -> None:
    """Remove the deliveries of events that the sink has stored. Deliveries that were replayed meanwhile are kept."""
    versions = {"sequences": [each.sequence for each in stored], "versions": [each.version for each in stored]}
    await connection.execute(_REMOVE, {"sink": sink, **versions})


async def refuse(connection: AsyncConnection, sink: str, event: StoredEvent, reason: str) -> None:
    """Turn a waiting event into a dead letter, unless it was replayed meanwhile.

    NUL characters in the reason are replaced, because PostgreSQL cannot store them.
    """
    values = {"sequence": event.sequence, "version": event.version, "reason": reason.replace("\0", "�")[:2000]}
    await connection.execute(_REFUSE, {"sink": sink, **values})


async def states(database: Database) -> list[SinkState]:
    """Return the state of each sink that has waiting events or dead letters. Raises DatabaseUnavailable."""
    async with database.read() as connection:
        return await states_on(connection)


async def states_on(connection: AsyncConnection) -> list[SinkState]:
    """Return the same as `states`, read on this connection."""
    return [SinkState(*row) for row in await connection.execute(_STATES)]


async def dead_letters(
    database: Database, *, sink: str | None, after: int, limit: int, after_sink: str = "\U0010ffff"
) -> list[DeadLetter]:
    """Return dead letters, ordered by the event's sequence and by sink. The page starts after (`after`, `after_sink`).

    By default it starts with the first sequence above `after`. Raises DatabaseUnavailable.
    """
    async with database.read() as connection:
        found = await connection.execute(
            _DEAD_LETTERS, {"sink": sink, "after": after, "after_sink": after_sink, "limit": limit}
        )
        return [DeadLetter(*row) for row in found]


async def kept(database: Database, *, after: int, limit: int) -> list[KeptEvent]:
    """Return stored events with a sequence above `after`, in order. Raises DatabaseUnavailable."""
    async with database.read() as connection:
        return [KeptEvent(*row) for row in await connection.execute(_KEPT, {"after": after, "limit": limit})]


async def replay(
    connection: AsyncConnection, sinks: Sequence[str], *, sequence: int | None = None, time: datetime | None = None
) -> int:
    """Make all stored events from `sequence` or `time` on wait for the sinks again. Return the number of deliveries.

    Events that already wait are not counted. The caller commits.
    """
    await connection.execute(_LOCK_KEEPING, {"class": _CLASS, "number": _KEEPING})
    values = {"sinks": list(sinks), "sequence": sequence, "time": time}
    return int((await connection.execute(_REPLAY, values)).scalar_one())


async def retry_dead_letters(connection: AsyncConnection, sink: str) -> int:
    """Make all dead letters of the sink wait again. Return their number. The caller commits."""
    await connection.execute(_LOCK_KEEPING, {"class": _CLASS, "number": _KEEPING})
    return await _count(connection, _RETRY, {"sink": sink})


async def forget(connection: AsyncConnection, sink: str) -> int:
    """Delete the waiting events and dead letters of a sink. Return their number. The caller commits."""
    waiting = await _count(connection, _FORGET_WAITING, {"sink": sink})
    return waiting + await _count(connection, _FORGET_DEAD, {"sink": sink})


async def delete_old(database: Database, *, age: timedelta, limit: int) -> int:
    """Delete up to `limit` old dead letters, and up to `limit` old events that wait for no sink. Return their number.

    Return 0 immediately while another process deletes or replays. A replay waits for this transaction, so it cannot
    choose an event that is being deleted. Raises DatabaseUnavailable and CommitUnknown.
    """
    parameters: dict[str, Any] = {"age": age, "limit": limit}
    async with database.transaction() as connection:
        if not (await connection.execute(_TRY_KEEPING, {"class": _CLASS, "number": _KEEPING})).scalar_one():
            return 0
        dead = await _count(connection, _OLD_DEAD, parameters)
        return dead + await _count(connection, _OLD_EVENTS, parameters)


async def _count(connection: AsyncConnection, statement: Any, parameters: Mapping[str, Any]) -> int:
    changed: int = (await connection.execute(statement, dict(parameters))).rowcount
    return changed
