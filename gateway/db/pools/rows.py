# SPDX-License-Identifier: Apache-2.0
"""Row types of statements that are built at run time, column lists for statements as text, and pages with a total."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from sqlalchemy import Row, Select, Table, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

AnyRow: TypeAlias = Row[*tuple[Any, ...]]


def columns_of(table: Table, alias: str) -> str:
    """Return the columns of a table in this version's schema, for a statement as text.

    Never use `*`: the next version's migration adds columns while this version serves. PostgreSQL refuses a prepared
    statement whose result columns changed.
    """
    return ", ".join(f"{alias}.{column.name}" for column in table.columns)


async def count_and_some(
    connection: AsyncConnection, statement: Select[Any], *, offset: int, limit: int
) -> tuple[int, Sequence[AnyRow]]:
    """Return (the number of all rows, a page of them). The order of `statement` must be unique."""
    total = (
        await connection.execute(select(func.count()).select_from(statement.order_by(None).subquery()))
    ).scalar_one()
    if limit == 0:
        return total, ()
    return total, (await connection.execute(statement.offset(offset).limit(limit))).all()
