# SPDX-License-Identifier: Apache-2.0
"""Reads that every request waits for, compiled once and executed by the driver.

SQLAlchemy's execution of a statement costs five times as much as the driver's, and half as much as a whole decision
may. So SQLAlchemy Core compiles the statement once, and the engine's pool gives the connection. The driver sends the
statement and decodes the row. Only for reads of one statement: no transaction is begun.
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

# Errors of the driver for a connection that cannot be used again, or for a plan that a migration invalidated.
_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InvalidCachedStatementError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    ConnectionError,
)


class ConnectionLost(Exception):
    """The connection was lost during a read: the statement can be retried on another connection."""


class DirectRead:
    """A read of one row. The first engine that executes it compiles its statement.

    Every column needs a name that is an identifier. Write values that never change into the statement as literals: the
    planner does not match a parameter with the predicate of a partial index.
    """

    def __init__(self, statement: Select[Any]) -> None:
        self.statement = statement
        self._sql = ""
        self._arguments: list[tuple[str | None, Any]] = []
        self._decoders: list[tuple[int, Callable[[Any], Any]]] = []
        names = tuple(statement.selected_columns.keys())
        self._row: Any = namedtuple("Row", names)  # type: ignore[misc]  # the names are known at run time only

    async def one(self, engine: Engine, parameters: Mapping[str, Any]) -> Any:
        """Return the row, with its columns as attributes.

        Raises ConnectionLost if the connection can be replaced, DatabaseUnavailable if the database does not answer,
        and TimeoutError if the pool has no free connection.
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
            # After any error, also a cancelled request, the state of the connection is unknown. Outside of a greenlet,
            # `invalidate` closes it without a message to the server, which would have to be awaited.
            pooled.invalidate()
            if isinstance(error, _LOST):
                raise ConnectionLost from error
            if isinstance(error, (OSError, asyncio.TimeoutError, asyncpg.QueryCanceledError)):
                raise DatabaseUnavailable("the database does not answer") from error
            raise
        # A pool without room closes the connection here, which takes a round trip.
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
