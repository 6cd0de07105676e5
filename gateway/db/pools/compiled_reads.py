# SPDX-License-Identifier: Apache-2.0
"""Reads that requests wait for: compiled once by SQLAlchemy, and executed by the driver on connections of its own pool.

SQLAlchemy's execution of a statement costs five times as much as the driver's, and half as much as a whole decision
may. So SQLAlchemy Core compiles the statement only once. The driver sends the statement and decodes the rows. No
transaction is begun, so only single statements are possible. A statement is repeated after the loss of its connection.
So one that writes must have the same effect when it is repeated.
"""

from __future__ import annotations

import asyncio
import re
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, overload

import asyncpg
from sqlalchemy import ARRAY, CompoundSelect, Select, TextClause
from sqlalchemy.dialects.postgresql import asyncpg as driver_dialect
from sqlalchemy.types import TypeEngine

from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.db.pools.driver_pool import DriverPool
from gateway.db.pools.rows import RowType, make_rows, require_fields

#: Errors of the driver for a connection that cannot be used again, or for a plan that a migration invalidated.
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InvalidCachedStatementError,
    asyncpg.OutdatedSchemaCacheError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    ConnectionError,
)
#: Classes of SQLSTATE for a server that is unavailable: connection errors, missing resources, operator intervention.
_UNAVAILABLE = ("08", "53", "57")

_PLACEHOLDER = re.compile(r"\$(?P<number>\d+)::(?P<type>[A-Z]+)\b")

_DIALECT: Any = driver_dialect.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy annotates no dialects


_Statement: TypeAlias = Select[Any] | CompoundSelect[Any] | TextClause


class ConnectionLost(Exception):
    """The connection was lost during a statement. The statement can be repeated on another connection."""


class DirectRead(Generic[RowType]):
    """A read of one statement, which is compiled at its first execution.

    Every column needs a name that is an identifier. Write values that never change into the statement as literals: the
    planner does not match a parameter with the predicate of a partial index. A statement as text must cast its
    parameters, and no value of its rows is converted. `kind` is the type of its rows.
    """

    @overload
    def __init__(self: DirectRead[Any], statement: _Statement) -> None: ...
    @overload
    def __init__(self, statement: _Statement, kind: type[RowType]) -> None: ...

    def __init__(self, statement: _Statement, kind: type[RowType] | None = None) -> None:
        self.statement = statement
        self.kind = kind
        self._sql = ""
        self._arguments: list[tuple[str | None, Any]] = []
        self._decoders: list[tuple[int, Callable[[Any], Any]]] = []
        self._batch_sql = ""
        self._batch_names: list[str] = []
        self._batch_constants: list[Any] = []
        self._row: Any = None

    async def all(self, pool: DriverPool, parameters: Mapping[str, Any]) -> list[RowType]:
        """Return the rows, with their columns as attributes.

        Raises DatabaseUnavailable if the database does not respond or the pool has no free connection.
        """
        if not self._sql:
            self._compile()
        arguments = [value if name is None else parameters[name] for name, value in self._arguments]
        return self._rows(await _fetch(pool, self._sql, arguments))

    async def each(self, pool: DriverPool, members: Sequence[Mapping[str, Any]]) -> list[RowType]:
        """Return one row for each member (a set of parameters) in order, using one statement.

        The read must find one row for any parameters. Each member's row is what the read alone returns for its
        parameters at that moment: the statement of the batch contains the read, executed for each member. All members
        are read from one snapshot. Raises the errors of `all`, and ValueError if a member does not have exactly one
        row.
        """
        if not self._batch_sql:
            self._compile_batch()
        arguments: list[Any] = [[member[name] for member in members] for name in self._batch_names]
        records = await _fetch(pool, self._batch_sql, [*arguments, *self._batch_constants])
        rows = dict(zip((record[0] for record in records), self._rows(records, first=1), strict=True))
        if len(records) != len(members) or len(rows) != len(members):
            raise ValueError(
                f"{len(records)} rows for {len(members)} members of the batch; each member must have one row"
            )
        return [rows[number] for number in range(1, len(members) + 1)]

    def _rows(self, records: Sequence[Any], *, first: int = 0) -> list[RowType]:
        """Convert the driver's records to rows. The first `first` columns are left out."""
        if not records:
            return []
        if self._row is None:
            names = tuple(records[0].keys())[first:]
            if self.kind is not None:
                require_fields(self.kind, names)
            self._row = self.kind or namedtuple("Row", names)
        if first:
            records = [record[first:] for record in records]
        return make_rows(self._row, map(self._decoded, records) if self._decoders else records)

    def _decoded(self, record: Sequence[Any]) -> list[Any]:
        values = list(record)
        for at, decode in self._decoders:
            if values[at] is not None:
                values[at] = decode(values[at])
        return values

    def _compile(self) -> None:
        compiled: Any = self.statement.compile(dialect=_DIALECT)
        for name in compiled.positiontup:
            bound = compiled.binds[name]
            if bound.expanding or not _is_sent_as_given(bound.type):
                raise TypeError(f"the parameter {name} has a type that needs a conversion before it is sent")
            self._arguments.append((name, None) if bound.required else (None, bound.effective_value))
        columns = () if isinstance(self.statement, TextClause) else self.statement.selected_columns
        for at, column in enumerate(columns):
            # Arrays are not decoded by SQLAlchemy: the driver returns a list, which SQLAlchemy would only copy.
            element = _element_of(column.type).dialect_impl(_DIALECT)
            decode = element.result_processor(_DIALECT, None)
            if decode is not None and isinstance(column.type, ARRAY):
                raise TypeError(f"the array {column.key} has elements that need a conversion after they are read")
            if decode is not None:
                self._decoders.append((at, decode))
        self._sql = compiled.string

    def _compile_batch(self) -> None:
        """Compile the statement that executes the read for each row of an array of parameters.

        A placeholder `$3::UUID` becomes the column `p3` of a member, and `::UUID[]` the type of its array. The text
        between the placeholders is not changed, so a member is read exactly as by the read alone.
        """
        if not self._sql:
            self._compile()
        arrays: dict[int, str] = {}
        constants: dict[int, str] = {}

        def placed(found: re.Match[str]) -> str:
            at = int(found["number"])
            if self._arguments[at - 1][0] is None:
                constants[at] = f"${{{at}}}"
                return f"{constants[at]}::{found['type']}"
            arrays[at] = found["type"]
            return f"m.p{at}"

        body = _PLACEHOLDER.sub(placed, self._sql)
        if "$" in re.sub(r"\$\{\d+\}", "", body):
            raise TypeError("a parameter of the statement has no type")
        for number, (at, mark) in enumerate(constants.items(), len(arrays) + 1):
            body = body.replace(mark, f"${number}")
            self._batch_constants.append(self._arguments[at - 1][1])
        self._batch_names = [str(self._arguments[at - 1][0]) for at in arrays]
        given = ", ".join(f"${number}::{type}[]" for number, type in enumerate(arrays.values(), 1))
        columns = ", ".join(f"p{at}" for at in arrays)
        self._batch_sql = (
            f"SELECT m.number, q.* FROM unnest({given}) WITH ORDINALITY AS m({columns}, number) "  # noqa: S608 - composed of a compiled statement; every value is a parameter
            f"CROSS JOIN LATERAL ({body}) AS q"
        )


async def _fetch(pool: DriverPool, sql: str, arguments: Sequence[Any]) -> Sequence[Any]:
    """Return the driver's records. If the connection is lost, the statement is repeated once on a new connection.

    Raises DatabaseUnavailable.
    """
    try:
        return await _attempt(pool, sql, arguments)
    except ConnectionLost:
        # A restart of the database breaks all open connections, so none of them is used again.
        pool.outdate()
    try:
        return await _attempt(pool, sql, arguments)
    except ConnectionLost as again:
        raise DatabaseUnavailable("the connection to the database was lost") from again


async def _attempt(pool: DriverPool, sql: str, arguments: Sequence[Any]) -> Sequence[Any]:
    connection = pool.take() or await _acquired(pool)
    try:
        records: Sequence[Any] = await connection.fetch(sql, *arguments)
    except BaseException as error:
        # After any error, and after a cancellation, the state of the connection is unknown.
        pool.discard(connection)
        _raise_converted(error)
        raise
    pool.release(connection)
    return records


def _is_sent_as_given(type: TypeEngine[Any]) -> bool:
    """Return True if SQLAlchemy passes values of this type, or of an array of it, to the driver unchanged."""
    return _element_of(type).dialect_impl(_DIALECT).bind_processor(_DIALECT) is None


def _element_of(type: TypeEngine[Any]) -> TypeEngine[Any]:
    return type.item_type if isinstance(type, ARRAY) else type


async def _acquired(pool: DriverPool) -> asyncpg.Connection:
    try:
        return await pool.acquire()
    except (OSError, asyncpg.PostgresError) as error:
        if isinstance(error, OSError) or _is_unavailable(error):
            raise DatabaseUnavailable("the database accepts no connection") from error
        raise


def _raise_converted(error: BaseException) -> None:
    """Raise ConnectionLost or DatabaseUnavailable if the driver's error during a statement has one of these
    meanings.
    """
    # An `InterfaceError` that is also a ValueError is about a parameter, and the connection still works.
    if isinstance(error, _LOST) and not isinstance(error, ValueError):
        raise ConnectionLost from error
    if isinstance(error, OSError | asyncio.TimeoutError) or _is_unavailable(error):
        raise DatabaseUnavailable("the database does not answer") from error


def _is_unavailable(error: BaseException) -> bool:
    return isinstance(error, asyncpg.PostgresError) and str(error.sqlstate or "")[:2] in _UNAVAILABLE
