# SPDX-License-Identifier: Apache-2.0
"""Rows whose columns a statement builds at run time, and the columns of statements that are written as text."""

from __future__ import annotations

from typing import Any, TypeAlias

from sqlalchemy import Row, Table

AnyRow: TypeAlias = Row[*tuple[Any, ...]]


def columns_of(table: Table, alias: str) -> str:
    """The columns of a table that this version knows, for a statement written as text.

    Never `*`: the next version's migration adds columns while this one serves, and a statement that was prepared before
    is refused by PostgreSQL when its result has others than it had.
    """
    return ", ".join(f"{alias}.{column.name}" for column in table.columns)
