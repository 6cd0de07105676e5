# SPDX-License-Identifier: Apache-2.0
"""Statements that every request waits for, compiled once and sent by the driver itself.

SQLAlchemy's execution of a statement costs five times what the driver's costs, and half of what a whole decision may.
So the statement stays Core, which compiles it once, and its connection comes from the engine's pool, but the driver
sends it and decodes the answer. Only for one-statement reads: nothing here begins a transaction.
"""

from __future__ import annotations

import asyncio
from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

import asyncpg
from sqlalchemy import Select
from sqlalchemy.engine import Engine
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.util import greenlet_spawn

from gateway.access.dependency_errors import DatabaseUnavailable

# What the driver raises for a connection that is not to be used again, or for a plan that a migration outdated.
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InvalidCachedStatementError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    ConnectionError,
)


class ConnectionLost(Exception):
    """The connection was lost while nothing but reading was under way: the statement may be tried on another."""


class DirectRead:
    """A read of one row whose statement is compiled once, by the first engine that it is asked of.

    Every column needs a name that is an identifier. Values that never change are best written into the statement as
    literals: PostgreSQL's plan for all parameters proves nothing about a partial index from a parameter.
    """

    def __init__(self, statement: Select[Any]) -> None:
        self.statement = statement
        self._sql = ""
        self._arguments: list[tuple[str | None, Any]] = []
        self._decoders: list[tuple[int, Callable[[Any], Any]]] = []
        names = tuple(statement.selected_columns.keys())
        self._row: Any = namedtuple("Row", names)  # type: ignore[misc]  # the names are known at run time only

    async def one(self, engine: Engine, parameters: Mapping[str, Any]) -> Any:
        """The row, with its columns as attributes. Raises ConnectionLost, DatabaseUnavailable, and the pool's
        TimeoutError.
        """
        if not self._sql:
            self._compile(engine)
        arguments = [value if name is None else parameters[name] for name, value in self._arguments]
        pooled: PoolProxiedConnection = await greenlet_spawn(engine.pool.connect)
        try:
            driver = pooled.driver_connection
            assert isinstance(driver, asyncpg.Connection)  # noqa: S101 - the engine's URL names this driver
            record = await driver.fetchrow(self._sql, *arguments)
        except BaseException as error:
            # Whatever it was, also a cancelled request: nobody knows what is still under way on this connection.
            # Outside a greenlet it is cut off at once, without a word to the server that would have to be waited for.
            pooled.invalidate()
            if isinstance(error, _LOST):
                raise ConnectionLost from error
            if isinstance(error, (OSError, asyncio.TimeoutError, asyncpg.QueryCanceledError)):
                raise DatabaseUnavailable("the database does not answer") from error
            raise
        # Where the pool has no room for it any more it is closed here, which takes a round trip.
        await greenlet_spawn(pooled.close)
        assert record is not None  # noqa: S101 - statements of this kind always have a row
        values = list(record.values())
        for at, decode in self._decoders:
            if values[at] is not None:
                values[at] = decode(values[at])
        return self._row._make(values)

    def _compile(self, engine: Engine) -> None:
        compiled: Any = self.statement.compile(dialect=engine.dialect)
        for name in compiled.positiontup:
            bound = compiled.binds[name]
            if bound.type.dialect_impl(engine.dialect).bind_processor(engine.dialect) is not None or bound.expanding:
                raise TypeError(f"the parameter {name} cannot be sent as it is")
            self._arguments.append((name, None) if bound.required else (None, bound.effective_value))
        for at, column in enumerate(self.statement.selected_columns):
            decode = column.type.dialect_impl(engine.dialect).result_processor(engine.dialect, None)
            if decode is not None:
                self._decoders.append((at, decode))
        self._sql = compiled.string
