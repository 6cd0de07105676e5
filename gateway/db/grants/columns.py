# SPDX-License-Identifier: Apache-2.0
"""Statements about grants on columns."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, Text, func, literal_column, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.tuples import Principal
from gateway.db.grants.grant_ends import GrantRow
from gateway.db.grants.grants import held_by
from gateway.db.pools.rows import columns_for, fetch_all
from gateway.db.schema.grants import grants

_table: ColumnElement[str] = func.split_part(grants.c.object_id, literal_column("'.'"), literal_column("1"))
#: True for a grant on a column. The type is a literal, so that the planner can use the partial index.
ON_A_COLUMN = grants.c.object_type == literal_column("'column'", Text)


async def granted_on(
    connection: AsyncConnection, table_id: UUID, *, of: Principal | None = None, after: UUID | None, limit: int
) -> Sequence[GrantRow]:
    """Return the live grants on all columns of a table, oldest first, starting after the id
    `after`. With `of`, return those of one principal.
    """
    live = or_(grants.c.expires_at.is_(None), grants.c.expires_at > func.clock_timestamp())
    statement = (
        select(*columns_for(GrantRow, grants))
        .where(ON_A_COLUMN, _table == str(table_id), live, *held_by(of))
        .order_by(grants.c.id)
        .limit(limit)
    )
    if after is not None:
        statement = statement.where(grants.c.id > after)
    return await fetch_all(connection, GrantRow, statement)
