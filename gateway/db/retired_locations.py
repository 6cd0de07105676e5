# SPDX-License-Identifier: Apache-2.0
"""Statements on places where a table or view used to lie.

Keys for a place live on after its table is gone, and so do its files. So a place stays taken until the last key has
ended, and its files stay with the owners of what lay there. Rows are written by a trigger (`first_schema.sql`),
owners included; a statement that takes a place away adds the principal that did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, delete, func, or_, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.rows import AnyRow
from gateway.db.schema.retired_locations import retired_locations as retired


def overlapping(column: str) -> str:
    """SQL for: the overlap key in `column` is that of a place at, above or below `:key`, where `:at` are `:key` and the
    keys of all places above it (`around`). What is asked of places that are taken, were, or are being purged.
    """
    return f"({column} = any(:at) or starts_with({column}, :key))"


def around(location_key: str, ancestors: Sequence[str]) -> dict[str, Any]:
    """The parameters of `overlapping`; `ancestors` are the overlap keys of all places above the place."""
    return {"key": location_key, "at": [location_key, *ancestors]}


#: SQL for: keys for the place `r` of `retired_locations` may still live.
REACHABLE: Final = "r.keys_until > clock_timestamp()"


async def retired_by(connection: AsyncConnection, table_id: UUID, principal: str) -> None:
    """Say who gave the place of this table or view up. Call it in the transaction that took its row or moved it."""
    await connection.execute(
        update(retired)
        .where(retired.c.table_id == table_id, retired.c.retired_by.is_(None))
        .values(retired_by=principal)
    )


async def last_place(
    connection: AsyncConnection, above: Sequence[tuple[str, str]], *, user: str, replaced: UUID | None
) -> AnyRow | None:
    """Return the latest recorded location among `above`, pairs of a location's text and its overlap key, or None.

    It is where a table or view lay last, or where the table `replaced` lies now. The row has location, location_key,
    warehouse_id, files_remain, owners, and `known`: whether `user` has been registered without a break since then.
    """
    texts, keys = [text for text, _ in above], [key for _, key in above]
    values = {"texts": texts, "above": keys, "user": user, "replaced": replaced}
    return (await connection.execute(_LAST_PLACE, values)).one_or_none()


# A deleted user who comes back has a newer record and owns nothing of before. The keys serve the index alone: a twin by
# letter case is another folder of the store, and its record, though newer, says nothing about this one.
_LAST_PLACE = text(
    """
    select p.location, p.location_key, p.warehouse_id, p.files_remain, p.owners,
        exists (select 1 from users u where u.id = :user and u.created_at <= p.since) as known
    from (
        select r.location, r.location_key, r.warehouse_id, r.files_remain, r.owners, r.retired_at as since
        from retired_locations r where r.location_key = any(:above) and r.location = any(:texts)
        union all
        select t.location, t.location_key, t.warehouse_id, true, permanent_owners(t.kind, t.id), clock_timestamp()
        from tables t where t.id = cast(:replaced as uuid) and t.location = any(:texts)
    ) p
    order by p.since desc limit 1
    """
)


async def nested(connection: AsyncConnection, location_key: str, ancestors: Sequence[str]) -> bool:
    """Return True if a retired location with files, or one that keys still reach, lies above or below this one."""
    return bool((await connection.execute(_NESTED, around(location_key, ancestors))).scalar_one())


_NESTED = text(
    f"""
    select exists (select 1 from retired_locations r
        where {overlapping("r.location_key")} and r.location_key <> :key and (r.files_remain or {REACHABLE}))
    """  # noqa: S608 - composed of constants; every value is a bound parameter
)


async def taken_in(connection: AsyncConnection, location: str, location_key: str) -> None:
    """Delete the retired locations at or below a place that a table takes: what lies there is that table's now.

    Rows of twins by letter case stay: their files lie in other folders, which nothing found empty.
    """
    await connection.execute(delete(retired).where(*_at_or_below(location, location_key)))


async def files_gone(connection: AsyncConnection, table_id: UUID, location: str, location_key: str) -> None:
    """Say that the files at and below a place that a table or view gave up were deleted; forgets places that no key
    reaches any more. Where a view lay before it moved there is another place, whose files remain.
    """
    there = (retired.c.table_id == table_id, *_at_or_below(location, location_key))
    await connection.execute(update(retired).where(*there).values(files_remain=False))
    await connection.execute(_FORGET)


def _at_or_below(location: str, location_key: str) -> tuple[ColumnElement[bool], ...]:
    """Return conditions for the rows at or below the exact text `location`; its overlap key serves the index."""
    exact = or_(retired.c.location == location, func.starts_with(retired.c.location, f"{location}/"))
    return func.starts_with(retired.c.location_key, location_key), exact


_FORGET = text(
    f"delete from retired_locations r where not r.files_remain and not ({REACHABLE})"  # noqa: S608 - as above
)
