# SPDX-License-Identifier: Apache-2.0
"""Statements on places where a table or view used to lie.

Keys for a place live on after its table is gone, and so do its files, which tell of themselves where they are. So a
place stays taken for everybody until the last key has ended, and what lies there stays with who gave it up.
Rows are written by a trigger (migration 0003); a statement that takes a place away adds who did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy import delete, func, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.schema.retired import retired_locations as retired


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


async def left_by_others(
    connection: AsyncConnection, location_key: str, ancestors: Sequence[str], *, principal: str
) -> bool:
    """Whether files of a table or view that somebody else gave up lie at, above or below this place."""
    found = await connection.execute(_LEFT_BY_OTHERS, {**around(location_key, ancestors), "principal": principal})
    return bool(found.scalar_one())


_LEFT_BY_OTHERS = text(
    f"""
    select exists (select 1 from retired_locations r
        where {overlapping("r.location_key")} and r.files_remain and r.retired_by is distinct from :principal)
    """  # noqa: S608 - composed of constants; every value is a bound parameter
)


async def taken_in(connection: AsyncConnection, location_key: str) -> None:
    """Forget what lay at or below a place that a table is registered at: its files are that table's from now on."""
    await connection.execute(delete(retired).where(func.starts_with(retired.c.location_key, location_key)))


async def files_gone(connection: AsyncConnection, table_id: UUID, location_key: str) -> None:
    """Say that the files at and below a place that a table or view gave up were deleted; forgets places that no key
    reaches any more. Where a view lay before it moved there is another place, whose files remain.
    """
    there = (retired.c.table_id == table_id, func.starts_with(retired.c.location_key, location_key))
    await connection.execute(update(retired).where(*there).values(files_remain=False))
    await connection.execute(_FORGET)


_FORGET = text(
    f"delete from retired_locations r where not r.files_remain and not ({REACHABLE})"  # noqa: S608 - as above
)
