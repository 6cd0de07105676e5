# SPDX-License-Identifier: Apache-2.0
"""Typed rows, column lists for statements that are text, and pages with a total number.

The type of a row is a `NamedTuple`, or a struct or dataclass with positional fields, with one field for each column of
its statement. `mypy` checks the code that uses rows by this type, and each execution compares its fields with the
columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import starmap
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, CursorResult, Executable, Select, Table, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

RowType = TypeVar("RowType")


def fields_of(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of the fields of a row type."""
    names = getattr(kind, "_fields", None) or getattr(kind, "__struct_fields__", None) or kind.__dataclass_fields__
    return tuple(names)


def columns_for(kind: type[Any], table: Table) -> list[ColumnElement[Any]]:
    """Return the columns of a table that correspond to the fields of this row type.

    Raises KeyError if the table lacks one.
    """
    return [table.c[name] for name in fields_of(kind)]


def require_fields(kind: type[Any], columns: Iterable[str]) -> None:
    """Raise TypeError unless the fields of the row type are the columns of the statement, in the same order."""
    if tuple(columns) != fields_of(kind):
        raise TypeError(f"{kind.__name__} has {', '.join(fields_of(kind))}; the statement has {', '.join(columns)}")


def make_rows(kind: type[RowType], records: Iterable[Iterable[Any]]) -> list[RowType]:
    """Return a row of this type for each record of values.

    `require_fields` must have compared the columns with the fields of the type.
    """
    make: Callable[[Iterable[Any]], RowType] | None = getattr(kind, "_make", None)
    return list(starmap(kind, records)) if make is None else [make(record) for record in records]


def _rows(kind: type[RowType], result: CursorResult[Any]) -> list[RowType]:
    require_fields(kind, result.keys())
    return make_rows(kind, result)


async def fetch_all(
    connection: AsyncConnection, kind: type[RowType], statement: Executable, values: Mapping[str, Any] | None = None
) -> list[RowType]:
    """Execute a statement and return its rows."""
    return _rows(kind, await connection.execute(statement, values))


async def fetch_one(
    connection: AsyncConnection, kind: type[RowType], statement: Executable, values: Mapping[str, Any] | None = None
) -> RowType:
    """Execute a statement that finds exactly one row, and return it. Raises ValueError for another number of rows."""
    (row,) = _rows(kind, await connection.execute(statement, values))
    return row


async def fetch_optional(
    connection: AsyncConnection, kind: type[RowType], statement: Executable, values: Mapping[str, Any] | None = None
) -> RowType | None:
    """Execute a statement that finds at most one row. Return it or None. Raises ValueError for more rows."""
    rows = _rows(kind, await connection.execute(statement, values))
    if len(rows) > 1:
        raise ValueError(f"{len(rows)} rows instead of at most one")
    return rows[0] if rows else None


def columns_of(kind: type[Any], alias: str) -> str:
    """Return the columns of a row type as SQL, for a statement that is text.

    Never use `*`: the next version's migration adds columns while this version serves. PostgreSQL refuses a prepared
    statement whose result columns changed.
    """
    return ", ".join(f"{alias}.{name}" for name in fields_of(kind))


async def count_and_some(
    connection: AsyncConnection, kind: type[RowType], statement: Select[Any], *, offset: int, limit: int
) -> tuple[int, Sequence[RowType]]:
    """Return (the number of all rows, one page of the rows). The order of `statement` must be unique."""
    total = (
        await connection.execute(select(func.count()).select_from(statement.order_by(None).subquery()))
    ).scalar_one()
    if limit == 0:
        return total, ()
    return total, await fetch_all(connection, kind, statement.offset(offset).limit(limit))
