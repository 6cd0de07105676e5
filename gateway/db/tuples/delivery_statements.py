# SPDX-License-Identifier: Apache-2.0
"""The two statements of a delivery to OpenFGA: one before the write of the tuples, and one after it.

Each commits by itself. The caller holds the advisory locks of the keys, which an earlier statement took, so the first
of the two sees every change of an earlier delivery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Final
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.access.tuples import TupleKey
from gateway.db.tuples.desired_tuples import DesiredParts, desired_parts


@dataclass(frozen=True, slots=True)
class Begun:
    """The state of a delivery before its write.

    `desired`: the tuples that the rows require, each with its expiry. `settled_at`: the keys that an earlier write may
    still change, each with the end of that time. `sent_before`: the rows that still exist, each with its earlier record
    of a write or None.
    """

    desired: Mapping[TupleKey, datetime | None]
    settled_at: Mapping[TupleKey, datetime]
    sent_before: Mapping[int, datetime | None]


async def begin(
    connection: AsyncConnection, ids: Sequence[int], keys: Sequence[TupleKey], *, window_seconds: float
) -> Begun:
    """Read the desired tuples of the keys and the earlier writes, and record that a write for the rows is in flight.

    The commit does not wait for the disk: the record need not survive a power failure of the database's machine.
    """
    parts, values = desired_parts(keys)
    rows = await connection.execute(_begin(parts), {**values, "ids": list(ids), "window": window_seconds})
    desired: dict[TupleKey, datetime | None] = {}
    settled_at: dict[TupleKey, datetime] = {}
    sent_before: dict[int, datetime | None] = {}
    for row in rows:
        match row.part:
            case "desired":
                desired[keys[row.number - 1]] = row.at
            case "unsettled":
                settled_at[keys[row.number - 1]] = row.at
            case _:
                sent_before[row.number] = row.at
    return Begun(desired, settled_at, sent_before)


@cache
def _begin(parts: DesiredParts) -> TextClause:
    return text(
        f"""
        with {parts.tables},
        desired as materialized ({parts.select}),
        unsettled as materialized (
            select a.ord, max(o.sent_at) + make_interval(secs => :window) as settled_at
            from asked a
            join outbox o on o.object_id = a.object_id and o.subject_id = a.subject_id and o.relation = a.relation
                and o.object_type = a.object_type and o.subject_type = a.subject_type
            where o.sent_at > clock_timestamp() - make_interval(secs => :window)
            group by a.ord),
        mine as materialized (select id, sent_at from outbox where id = any(:ids) order by id for update),
        marked as (update outbox o set sent_at = clock_timestamp() from mine where o.id = mine.id)
        select 'row' as part, id as number, sent_at as at, set_config('synchronous_commit', 'off', true) from mine
        union all select 'desired', ord, until, null from desired
        union all select 'unsettled', ord, settled_at, null from unsettled
        """  # noqa: S608 - composed of constants of `desired_tuples`; every value is a bound parameter
    )


async def finish(
    connection: AsyncConnection, ids: Sequence[int], warehouses: Sequence[UUID], *, server_too: bool
) -> None:
    """Delete the rows of delivered keys, and change the revisions of these warehouses and, with `server_too`, of the
    server. All of it commits together.
    """
    values = {
        "ids": list(ids),
        "warehouses": list(warehouses),
        "revisions": [uuid7() for _ in warehouses],
        "server_too": server_too,
        "server_revision": uuid7(),
    }
    await connection.execute(_FINISH, values)


# The warehouses are locked in the order of their ids and the server last, so that two deliveries cannot deadlock.
_FINISH: Final = text(
    """
    with gone as (delete from outbox where id = any(:ids)),
    held as materialized (
        select w.id from warehouses w where w.id = any(cast(:warehouses as uuid[])) order by w.id for no key update),
    moved as (
        update warehouses w set revision = f.revision
        from unnest(cast(:warehouses as uuid[]), cast(:revisions as uuid[])) as f(id, revision)
        join held on held.id = f.id where w.id = f.id
        returning 1)
    update server set revision = cast(:server_revision as uuid)
    where cast(:server_too as boolean) and (select count(*) from moved) >= 0
    """
)
