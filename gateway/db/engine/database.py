# SPDX-License-Identifier: Apache-2.0
"""Connections to the primary: reads in autocommit mode, and transactions that write their audit record."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.access.door.permit import Permit
from gateway.access.events.event_building import NewEvent
from gateway.access.nouns.resolved import Resolution
from gateway.access.operation import Operation
from gateway.db.engine.decision_revalidation import REVISIONS, revalidate_and_record, revalidate_by
from gateway.db.engine.event_outbox import EventOutbox, announce
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.driver_pool import DriverPool, connect_like
from gateway.db.pools.rows import RowType, make_rows
from gateway.db.pools.shared_reads import SharedReads
from gateway.db.pools.statement_hooks import named, summary_of
from gateway.spans import span, spanned

Answer = TypeVar("Answer")


_LOCK = text(
    "select pg_advisory_lock(h) from "
    "(select distinct hashtextextended(n, 7) as h from unnest(cast(:names as text[])) n order by h) locks"
)
_UNLOCK = text("select pg_advisory_unlock_all()")

_CANCELED = "57014"
_RECYCLE_SECONDS = 1800

Connection: TypeAlias = AsyncConnection
"""The connection on which statements of `gateway.db` run. Use cases only pass it on."""


class Database:
    """The primary database of one process, or its replica.

    `url` is a SQLAlchemy URL for asyncpg. At most `2 * pool_size` connections are opened, on demand, and kept. With
    `direct_reads`, a third of them (rounded down) only execute reads of one statement (`read_all`), without SQLAlchemy.
    A `read_only` instance opens at most `pool_size`, all for SQLAlchemy, and PostgreSQL rejects every change on them.
    If more than `unshared_reads` resolutions are in flight, further ones share statements (`SharedReads`); with 0 none
    do. `acquire_timeout` (seconds) limits the wait for a connection. `statement_timeout` (seconds) limits every
    statement, also on the server. `tls` is a context or an `sslmode` of libpq. With `event_outbox`, changes write their
    events.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int,
        acquire_timeout: float,
        statement_timeout: float = 15.0,
        tls: ssl.SSLContext | str = "prefer",
        read_only: bool = False,
        direct_reads: bool = True,
        unshared_reads: int = 0,
        event_outbox: EventOutbox | None = None,
    ) -> None:
        self._event_outbox = event_outbox
        total = pool_size if read_only else 2 * pool_size
        # A change may use three connections of SQLAlchemy at a time: for a lock, a transaction and a read. So most
        # connections stay with SQLAlchemy.
        direct = total // 3 if direct_reads and not read_only else 0
        settings = {
            "ssl": tls,
            "timeout": acquire_timeout,
            "command_timeout": statement_timeout,
            "server_settings": {
                "application_name": "lakegate",
                "statement_timeout": str(int(statement_timeout * 1000)),
                "jit": "off",
                **({"default_transaction_read_only": "on"} if read_only else {}),
            },
        }
        self._engine = create_async_engine(
            url,
            # No overflow connections, which would be closed after a busy moment: opening one costs as much as many
            # statements.
            pool_size=total - direct,
            max_overflow=0,
            pool_timeout=acquire_timeout,
            pool_recycle=_RECYCLE_SECONDS,
            connect_args=settings,
        )
        self._autocommit = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._direct = (
            DriverPool(
                connect_like(self._engine, settings),
                size=direct,
                acquire_timeout=acquire_timeout,
                recycle_seconds=_RECYCLE_SECONDS,
            )
            if direct
            else None
        )
        self._shared = (
            SharedReads(self._direct, unshared=min(unshared_reads, direct), wait=acquire_timeout)
            if self._direct is not None and unshared_reads
            else None
        )

    @property
    def engine(self) -> AsyncEngine:
        """Return SQLAlchemy's engine, for migrations and tests."""
        return self._engine

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """Yield a connection for reads that are one statement each. Raises DatabaseUnavailable."""
        with outages():
            async with self._autocommit.connect() as connection:
                yield connection

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[AsyncConnection]:
        """Yield a connection for changes of the gateway's internal state. Each statement on it commits by itself.

        Raises DatabaseUnavailable, for example if the outcome of a commit is unknown. The caller must then not perform
        actions that depend on the commit.
        """
        async with self.read() as connection:
            yield connection

    async def read_one(self, read: DirectRead[RowType], parameters: Mapping[str, Any]) -> RowType:
        """Return the row of a read that always finds exactly one. Raises DatabaseUnavailable."""
        (row,) = await self.read_all(read, parameters)
        return row

    @spanned("postgresql.statement", lambda _self, read, *_: named(summary_of(read)))
    def read_all(self, read: DirectRead[RowType], parameters: Mapping[str, Any]) -> Awaitable[Sequence[RowType]]:
        """Return the rows of a read that is one statement.

        A restart of the database breaks all open connections. The read is then repeated once, on a new connection.
        Awaiting it raises DatabaseUnavailable.
        """
        if self._direct is None:
            return self._read_by_sqlalchemy(read, parameters)
        return read.all(self._direct, parameters)

    def read_shared(
        self, read: DirectRead[RowType], parameters: Mapping[str, Any], principal: str
    ) -> Awaitable[RowType]:
        """Return the row of a read that always finds exactly one.

        If many reads are in flight, concurrent requests share one statement (`SharedReads`). `principal` is the caller.
        Awaiting it raises DatabaseUnavailable.
        """
        if self._shared is None:
            return self.read_one(read, parameters)
        return self._shared.one(read, parameters, principal)

    async def _read_by_sqlalchemy(self, read: DirectRead[RowType], parameters: Mapping[str, Any]) -> Sequence[RowType]:
        """Return the rows, read on a connection of SQLAlchemy's pool.

        After the first broken connection the engine discards the others, so that the next attempt gets a new
        connection.
        """
        with outages():
            for tries_left in (1, 0):
                try:
                    async with self._autocommit.connect() as connection:
                        result = await connection.execute(read.statement, dict(parameters))
                        rows: Sequence[Any] = result.all() if result.returns_rows else ()
                        return rows if read.kind is None else make_rows(read.kind, rows)
                except DBAPIError as error:
                    if not tries_left or not _is_connection_loss(error):
                        raise
        raise AssertionError("unreachable: the last try returns or raises")

    async def execute_repeatable(
        self, statement: DirectRead[RowType], parameters: Mapping[str, Any]
    ) -> Sequence[RowType]:
        """Execute and commit one statement, and return its rows. Repeating the statement must have no further effect.

        It is repeated once if its connection is lost, even if the first attempt was committed. Raises
        DatabaseUnavailable.
        """
        return await self.read_all(statement, parameters)

    async def revalidate(self, permit: Permit[Operation]) -> Resolution:
        """Check that the decision of `permit` still holds, and return the resolution that it now depends on
        (`revalidate_by`).

        Raises DatabaseUnavailable.
        """
        return await revalidate_by(partial(self.read_all, REVISIONS), permit)

    async def prepare(self, reads: Iterable[tuple[DirectRead[Any], Mapping[str, Any]]]) -> None:
        """Open a connection for reads of one statement, and execute these reads on it with the given parameters.

        The server then has prepared the statements and read its catalog, so that the first request does not wait for
        that. Raises DatabaseUnavailable.
        """
        if self._direct is not None:
            for read, parameters in reads:
                await self.read_all(read, parameters)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """Yield a connection in a transaction without an audit record, for internal state such as the outbox."""
        with outages():
            async with self._engine.connect() as connection:
                await connection.begin()
                yield connection
                await commit(connection)

    @asynccontextmanager
    async def change(self, permit: Permit[Operation]) -> AsyncIterator[AsyncConnection]:
        """Yield a connection in a transaction that also writes the permit's audit record and the result under its
        idempotency key.

        The last step before COMMIT revalidates the decision of the permit; a refusal is raised. Raises
        DatabaseUnavailable if nothing was changed, CommitUnknown if the outcome is unknown, and OutOfTime if the
        request's time ended before COMMIT. The deadline does not interrupt COMMIT. Raises TypeError for an operation
        that declares that it changes nothing: read-only maintenance relies on that (`Operation`).
        """
        operation = permit.operation
        if not operation.changes():
            raise TypeError(
                f"{type(operation).__name__} is declared to change nothing, so it cannot open a transaction"
            )
        with span("postgresql.transaction", {"db.system.name": "postgresql"}), outages():
            async with self._engine.connect() as connection:
                await connection.begin()
                yield connection
                await revalidate_and_record(connection, permit, self._event_outbox)
                permit.deadline.end_time_limit()
                await commit(connection)
                permit.pending_audit.settle()
                if permit.claim is not None:
                    permit.claim.fulfilled = True

    @property
    def announces(self) -> bool:
        """Return True if changes write events, because a sink is configured."""
        return self._event_outbox is not None

    async def announce(self, connection: AsyncConnection, events: Sequence[NewEvent]) -> None:
        """Write the events of a change without a permit, in the transaction of the change.

        Do nothing if no sink is configured.
        """
        if self._event_outbox is not None:
            await announce(connection, self._event_outbox, events)

    @asynccontextmanager
    async def locked(self, names: Sequence[str]) -> AsyncIterator[AsyncConnection]:
        """Yield a connection that holds advisory locks on these names until the end of the block.

        Each statement on it commits by itself. The locks are taken in one order, so two callers cannot deadlock. No
        statement uses a transaction, which would cost two more round trips. Raises DatabaseUnavailable, for example if
        a lock is not available in time.
        """
        with outages():
            async with self._autocommit.connect() as connection:
                try:
                    await connection.execute(_LOCK, {"names": list(names)})
                    yield connection
                    await connection.execute(_UNLOCK)
                except BaseException:
                    # Closing the connection releases its locks in any state of the transaction.
                    await connection.invalidate()
                    raise

    async def ping(self) -> None:
        """Raise DatabaseUnavailable unless the database answers."""
        async with self.read() as connection:
            await connection.execute(text("select 1"))

    async def close(self) -> None:
        """Close all connections."""
        if self._direct is not None:
            await self._direct.close()
        await self._engine.dispose()


class Deadlocked(DatabaseUnavailable):
    """PostgreSQL aborted the transaction because of a conflict with another one.

    Nothing was changed. A retry may succeed.
    """


async def retry_serialization(attempt: Callable[[], Awaitable[Answer]], *, tries: int = 3) -> Answer:
    """Run `attempt` again if PostgreSQL aborted its transaction because of a conflict. Nothing was committed then.

    Raises Deadlocked after the last attempt.
    """
    for left in range(tries - 1, -1, -1):
        try:
            return await attempt()
        except Deadlocked:
            if left == 0:
                raise
            await asyncio.sleep(0.02 * (tries - left))
    raise AssertionError("unreachable: the last try returns or raises")


async def commit(connection: AsyncConnection) -> None:
    """Commit the transaction. Raises Deadlocked if it was aborted, CommitUnknown if its outcome is unknown."""
    try:
        await connection.commit()
    except DBAPIError as error:
        # An error of a deferred trigger aborts the transaction during COMMIT. The outcome is known: nothing was
        # changed.
        if _is_serialization_failure(error) or getattr(error.orig, "sqlstate", None) == _CANCELED:
            raise Deadlocked("the database aborted the transaction during its commit") from error
        raise CommitUnknown("the outcome of COMMIT is unknown") from error
    except (SQLAlchemyError, OSError, TimeoutError) as error:
        raise CommitUnknown("the outcome of COMMIT is unknown") from error


class outages:
    """Context manager.

    Converts errors of the driver about unavailability into DatabaseUnavailable. Other errors are not changed.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (PoolTimeoutError, ConnectionError, OSError, TimeoutError)):
            raise DatabaseUnavailable("the database does not answer") from error
        if isinstance(error, DBAPIError) and _is_serialization_failure(error):
            raise Deadlocked("a concurrent transaction conflicted with this one") from error
        if isinstance(error, DBAPIError) and _is_connection_loss(error):
            raise DatabaseUnavailable("the connection to the database was lost") from error


def _is_serialization_failure(error: DBAPIError) -> bool:
    """Return True for serialization failures and deadlocks (PostgreSQL documentation, appendix A, class 40)."""
    return getattr(error.orig, "sqlstate", None) in ("40001", "40P01")


def _is_connection_loss(error: DBAPIError) -> bool:
    state = getattr(error.orig, "sqlstate", None) or ""
    return error.connection_invalidated or state[:2] in ("08", "53", "57")
