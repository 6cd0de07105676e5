# SPDX-License-Identifier: Apache-2.0
"""Statements about grants on columns."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, Text, func, literal_column, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.rows import AnyRow
from gateway.db.schema.grants import grants

_table: ColumnElement[str] = func.split_part(grants.c.object_id, literal_column("'.'"), literal_column("1"))
#: Whether a grant is on a column. A literal: the partial index is found by it.
ON_A_COLUMN = grants.c.object_type == literal_column("'column'", Text)


async def granted_on(
    connection: AsyncConnection, table_id: UUID, *, after: UUID | None, limit: int
) -> Sequence[AnyRow]:
    """The live grants on all columns of a table, oldest first, those after the row `after`; rows of `grants`."""
    live = or_(grants.c.expires_at.is_(None), grants.c.expires_at > func.clock_timestamp())
    statement = select(grants).where(ON_A_COLUMN, _table == str(table_id), live).order_by(grants.c.id).limit(limit)
    if after is not None:
        statement = statement.where(grants.c.id > after)
    return (await connection.execute(statement)).all()
