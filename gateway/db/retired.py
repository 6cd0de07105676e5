# SPDX-License-Identifier: Apache-2.0
"""Statements on places where a table or view used to lie.

Keys for a place live on after its table is gone, and so do its files, which tell of themselves where they are. So a
place stays taken for everybody until the last key has ended, and what lies there stays with who gave it up.
Rows are written by a trigger (migration 0003); a statement that takes a place away adds who did.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, delete, func, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.schema.retired import retired_locations as retired


def overlapping(location_key: str, ancestors: Sequence[str]) -> ColumnElement[bool]:
    """At, above or below a place; `ancestors` are the overlap keys of all places above it."""
    return or_(
        retired.c.location_key.in_([location_key, *ancestors]), func.starts_with(retired.c.location_key, location_key)
    )


def reachable() -> ColumnElement[bool]:
    """Keys for the place may still live."""
    return retired.c.keys_until > func.clock_timestamp()


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
    statement = select(literal(1)).where(
        overlapping(location_key, ancestors),
        retired.c.files_remain,
        retired.c.retired_by.is_distinct_from(principal),
    )
    return (await connection.execute(statement.limit(1))).one_or_none() is not None


async def taken_in(connection: AsyncConnection, location_key: str) -> None:
    """Forget what lay at or below a place that a table is registered at: its files are that table's from now on."""
    await connection.execute(delete(retired).where(func.starts_with(retired.c.location_key, location_key)))


async def files_gone(connection: AsyncConnection, table_id: UUID) -> None:
    """Say that the files of a table that went were deleted; forgets places that no key reaches any more."""
    await connection.execute(update(retired).where(retired.c.table_id == table_id).values(files_remain=False))
    await connection.execute(delete(retired).where(~retired.c.files_remain, ~reachable()))
