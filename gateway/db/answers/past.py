# SPDX-License-Identifier: Apache-2.0
"""Let the statements of one transaction read the grants and placements of a past moment.

The schema `lakegate_past` has views with the names of the tables, and a function with the name of the clock (migration
0063). The transaction puts it in front of `search_path`, so the same statements answer about the present and about the
past. Names are those of today.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey, ObjectType, table_of
from gateway.db.pools.rows import fetch_one
from gateway.db.schema.objects import TABLES

_HISTORY: Final = text(
    """
    select greatest(s.history_since, (select min(m.switched_at) from model_switches m)) as since,
        (select m.model_id from model_switches m where m.switched_at <= cast(:at as timestamptz)
            order by m.id desc limit 1) as model_id
    from server s
    """
)
_GO_BACK: Final = text(
    """
    select set_config('lakegate.at', cast(:at as text), true),
        set_config('search_path', 'lakegate_past, pg_catalog, ' || current_setting('search_path'), true)
    """
)
_GO_FORWARD: Final = text("set local search_path to default")


class History(NamedTuple):
    """The beginning of the history of access to an object, and the model that checks used at a moment.

    `model_id` is None if the moment is before the first model.
    """

    since: datetime
    model_id: str | None


async def history_of(connection: AsyncConnection, key: ObjectKey, at: datetime) -> History:
    """Return the history of an object that exists. It does not begin before the object."""
    found = await fetch_one(connection, History, _HISTORY, {"at": at})
    created = await created_at(connection, key)
    return found if created is None else found._replace(since=max(found.since, created))


async def created_at(connection: AsyncConnection, key: ObjectKey) -> datetime | None:
    """Return the time since when the object or user exists, None for the server and for a user without a record."""
    if key.type is ObjectType.SERVER:
        return None
    row = table_of(key) if key.type is ObjectType.COLUMN else key
    table = TABLES[row.type]
    found: datetime | None = await connection.scalar(select(table.c.created_at).where(table.c.id == row.id))
    return found


async def go_forward(connection: AsyncConnection) -> None:
    """Let the next statements of the transaction read the present rows, also if they read those of a past moment."""
    await connection.execute(_GO_FORWARD)


async def go_back(connection: AsyncConnection, at: datetime) -> None:
    """Let the next statements of the transaction read the rows of the moment `at`."""
    await connection.execute(_GO_BACK, {"at": at.isoformat()})
