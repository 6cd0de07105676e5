# SPDX-License-Identifier: Apache-2.0
"""A pool of driver connections, without SQLAlchemy, for statements that need no transaction.

SQLAlchemy's pool needs two greenlets for each statement. This pool calls the driver directly. The pool of asyncpg sends
a query at each release, to reset the session. That is not needed here, because the statements of this pool change no
session state.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.access.dependency_errors import DatabaseUnavailable

Connect = Callable[[], Awaitable[asyncpg.Connection]]

#: A statement stays prepared for the life of its connection. By default, the driver would drop it after five minutes.
_KEEP_PREPARED: Final = {
    "statement_cache_size": 512,
    "max_cached_statement_lifetime": 0,
    "max_cacheable_statement_size": 0,
}

#: Generic plans do not depend on the parameters: the reads find rows by unique keys. Otherwise PostgreSQL would plan
#: each read of several members again, because it expects arrays of ten elements, and planning costs more than reading.
_SESSION: Final = {"plan_cache_mode": "force_generic_plan"}


class PoolTimeout(TimeoutError):
    """No connection became free in time."""


@dataclass(slots=True)
class _Opened:
    at: float
    epoch: int


class DriverPool:
    """At most `size` connections, opened on demand and kept. They belong to one event loop.

    `acquire_timeout` (seconds) limits the wait for a free connection. A connection is closed when it is older than
    `recycle_seconds`. A caller takes a connection with `take` or `acquire`, and returns it with exactly one call of
    `release` or `discard`. The connection that was used last is used next, because its statements are prepared.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        size: int,
        acquire_timeout: float,
        recycle_seconds: float = 1800.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._size = size
        self._acquire_timeout = acquire_timeout
        self._recycle_seconds = recycle_seconds
        self._clock = clock
        self._idle: list[asyncpg.Connection] = []
        self._opened: dict[asyncpg.Connection, _Opened] = {}
        self._opening = 0
        self._epoch = 0
        self._waiting: deque[asyncio.Future[asyncpg.Connection | None]] = deque()
        self._closed = False

    @property
    def in_use(self) -> int:
        """The number of connections that callers hold."""
        return len(self._opened) - len(self._idle)

    def take(self) -> asyncpg.Connection | None:
        """Take an idle connection. Return None if none is idle."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed() and not self._is_outdated(connection):
                return connection
            self._close(connection)
        return None

    async def acquire(self) -> asyncpg.Connection:
        """Take an idle connection, or open one. Callers that wait get connections in the order of their calls.

        Raises PoolTimeout if no connection becomes free in time, DatabaseUnavailable if the pool is closed, and the
        driver's errors of opening a connection.
        """
        if self._closed:
            raise DatabaseUnavailable("the connections to the database are closed")
        # While a connection is idle or may be opened, no caller waits: the first waiter gets it immediately.
        if (connection := self.take()) is not None:
            return connection
        if self._has_place():
            self._opening += 1
            return await self._open()
        handed = await self._wait()
        return await self._open() if handed is None else handed

    def release(self, connection: asyncpg.Connection) -> None:
        """Return a connection to the pool after a statement that completed."""
        if self._closed or connection.is_closed() or self._is_outdated(connection):
            self.discard(connection)
            return
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(connection)
                return
        self._idle.append(connection)

    def discard(self, connection: asyncpg.Connection) -> None:
        """Close a connection in an unknown state, for example after a cancelled statement."""
        self._close(connection)
        self._offer_places()

    def outdate(self) -> None:
        """Close every connection that is open now, because a restart of the database breaks all of them.

        Connections in use are closed when they are returned.
        """
        self._epoch += 1
        while self._idle:
            self._close(self._idle.pop())

    async def close(self) -> None:
        """Close the pool. Connections in use are closed when they are returned."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            self._opened.pop(connection, None)
        for turn in self._waiting:
            if not turn.done():
                turn.set_exception(DatabaseUnavailable("the connections to the database are closed"))
        self._waiting.clear()
        await asyncio.gather(*(connection.close(timeout=2) for connection in idle), return_exceptions=True)

    async def _open(self) -> asyncpg.Connection:
        """Open a connection. The caller has reserved its place in `_opening`."""
        epoch = self._epoch
        try:
            connection = await self._connect()
        except BaseException:
            self._opening -= 1
            self._offer_places()
            raise
        self._opening -= 1
        self._opened[connection] = _Opened(self._clock(), epoch)
        return connection

    async def _wait(self) -> asyncpg.Connection | None:
        """Wait for a connection and return it.

        Return None if a place for a new connection was reserved. Raises PoolTimeout.
        """
        turn: asyncio.Future[asyncpg.Connection | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(self._acquire_timeout):
                return await turn
        except BaseException as error:
            if not turn.done() or turn.cancelled():
                # A caller that got its turn is no longer in the queue.
                with contextlib.suppress(ValueError):
                    self._waiting.remove(turn)
            elif turn.exception() is None:
                # The caller got a connection at the moment of its timeout or cancellation.
                self._pass_on(turn.result())
            if isinstance(error, TimeoutError):
                raise PoolTimeout("no connection to the database became free in time") from error
            raise

    def _pass_on(self, handed: asyncpg.Connection | None) -> None:
        if handed is not None:
            self.release(handed)
            return
        self._opening -= 1
        self._offer_places()

    def _has_place(self) -> bool:
        return len(self._opened) + self._opening < self._size

    def _offer_places(self) -> None:
        """Reserve the free places for the callers that have waited longest."""
        while self._waiting and self._has_place():
            turn = self._waiting.popleft()
            if not turn.done():
                self._opening += 1
                turn.set_result(None)

    def _is_outdated(self, connection: asyncpg.Connection) -> bool:
        opened = self._opened[connection]
        return opened.epoch != self._epoch or self._clock() - opened.at > self._recycle_seconds

    def _close(self, connection: asyncpg.Connection) -> None:
        # `terminate` only closes the socket, and the server notices this. `close` would send a message and have to be
        # awaited.
        self._opened.pop(connection, None)
        connection.terminate()


def connect_like(engine: AsyncEngine, settings: dict[str, Any]) -> Connect:
    """Return a function that opens driver connections in the same way as `engine`.

    They have the same address, the same `settings` (SQLAlchemy's `connect_args`), and the same Python types for JSON.
    """
    _, address = engine.dialect.create_connect_args(engine.url)
    session = {**settings.get("server_settings", {}), **_SESSION}
    arguments = {**address, **settings, **_KEEP_PREPARED, "server_settings": session}
    arguments.pop("prepared_statement_cache_size", None)

    async def connect() -> asyncpg.Connection:
        connection = await asyncpg.connect(**arguments)
        try:
            for name in ("json", "jsonb"):
                await connection.set_type_codec(
                    name, encoder=str, decoder=json.loads, schema="pg_catalog", format="text"
                )
        except BaseException:
            connection.terminate()
            raise
        return connection

    return connect
