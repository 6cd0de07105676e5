# SPDX-License-Identifier: Apache-2.0
"""Write events into the outbox by SQL, as the transactions of changes do."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import text
from uuid_utils.compat import uuid7

from gateway.db.engine.database import Connection, Database

_EVENTS = text(
    "insert into events (id, at, type, source, key, attributes, data) "
    "select id, clock_timestamp(), 'createTable', 'uri:iceberg-catalog-service:test', key, "
    "jsonb_build_object('tabularid', key, 'objectid', key), cast('{}' as bytea) "
    "from unnest(cast(:ids as uuid[]), cast(:keys as text[])) with ordinality as new (id, key, place) "
    "order by place returning sequence, id"
)
_DELIVERIES = text(
    "insert into event_deliveries (sink, sequence) select sink, sequence "
    "from unnest(cast(:sinks as text[])) as s (sink) cross join unnest(cast(:sequences as bigint[])) as e (sequence)"
)


async def put(connection: Connection, keys: Sequence[str], *sinks: str) -> list[str]:
    """Write one event for each key, for all sinks. Return the ids in order."""
    ids = [uuid7() for _ in keys]
    rows = (await connection.execute(_EVENTS, {"ids": ids, "keys": list(keys)})).all()
    await connection.execute(_DELIVERIES, {"sinks": list(sinks), "sequences": [row.sequence for row in rows]})
    return [str(row.id) for row in sorted(rows, key=lambda row: int(row.sequence))]


async def put_committed(database: Database, keys: Sequence[str], *sinks: str) -> list[str]:
    """Write and commit events as `put` does."""
    async with database.transaction() as connection:
        return await put(connection, keys, *sinks)


async def count_waiting(database: Database, sink: str) -> int:
    """Return the number of events that wait for the sink."""
    async with database.read() as connection:
        found = await connection.execute(
            text("select count(*) from event_deliveries where sink = :sink"), {"sink": sink}
        )
        return int(found.scalar_one())


class Counts:
    """Observer that keeps the counts."""

    def __init__(self) -> None:
        self.failures: list[str] = []
        self.counted: dict[str, tuple[int, int]] = {}

    def events_delivered(self, sink: str, count: int) -> None:
        """Ignore it."""

    def event_failed(self, sink: str, reason: str) -> None:
        """Keep the reason."""
        self.failures.append(reason)

    def events_counted(self, sink: str, waiting: int, dead_letters: int, oldest_seconds: float) -> None:
        """Keep the numbers."""
        self.counted[sink] = (waiting, dead_letters)
