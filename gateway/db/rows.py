# SPDX-License-Identifier: Apache-2.0
"""Rows whose columns a statement builds at run time, the columns of statements that are written as text, and pages of
lists that tell how many there are in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from sqlalchemy import Row, Select, Table, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

AnyRow: TypeAlias = Row[*tuple[Any, ...]]


def columns_of(table: Table, alias: str) -> str:
    """The columns of a table that this version knows, for a statement written as text.

    Never `*`: the next version's migration adds columns while this one serves, and a statement that was prepared before
    is refused by PostgreSQL when its result has others than it had.
    """
    return ", ".join(f"{alias}.{column.name}" for column in table.columns)


async def count_and_some(
    connection: AsyncConnection, asked: Select[Any], *, offset: int, limit: int
) -> tuple[int, Sequence[AnyRow]]:
    """(how many rows there are, some of them). `asked` has an order that no two rows share."""
    total = (await connection.execute(select(func.count()).select_from(asked.order_by(None).subquery()))).scalar_one()
    if limit == 0:
        return total, ()
    return total, (await connection.execute(asked.offset(offset).limit(limit))).all()
