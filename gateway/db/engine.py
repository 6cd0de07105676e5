# SPDX-License-Identifier: Apache-2.0
"""Connections: the primary with its autocommit twin, and transactions that carry their audit record."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import TextClause, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.access.operation import HttpOperation, Operation
from gateway.access.permit import Permit
from gateway.db import audit_log, idempotency_claims
from gateway.db.compiled_reads import ConnectionLost, DirectRead
from gateway.db.decision_revalidation import revalidate_decision
from gateway.db.rows import AnyRow

Answer = TypeVar("Answer")


_LOCK = text(
    "select pg_advisory_lock(h) from "
    "(select distinct hashtextextended(n, 7) as h from unnest(cast(:names as text[])) n order by h) locks"
)
_UNLOCK = text("select pg_advisory_unlock_all()")

_CANCELED = "57014"

Connection: TypeAlias = AsyncConnection
"""What statements of this room run on; use cases pass it on and know nothing else of it."""


class Database:
    """The primary database of one process, or its replica.

    `url` is a SQLAlchemy URL for asyncpg. At most twice `pool_size` connections are opened, when they are needed, and
    kept. A `read_only` one opens at most `pool_size`, and PostgreSQL refuses every change on them. `acquire_timeout`
    (seconds) bounds the wait for one of them, `statement_timeout` (seconds) every statement, on the server's side too.
    `tls` is a context or libpq's `sslmode`.
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
    ) -> None:
        self._engine = create_async_engine(
            url,
            # None beyond the pool, to be closed after a busy moment: opening one costs as much as many statements.
            pool_size=pool_size if read_only else 2 * pool_size,
            max_overflow=0,
            pool_timeout=acquire_timeout,
            pool_recycle=1800,
            connect_args={
                "ssl": tls,
                "timeout": acquire_timeout,
                "command_timeout": statement_timeout,
                "server_settings": {
                    "application_name": "lakegate",
                    "statement_timeout": str(int(statement_timeout * 1000)),
                    "jit": "off",
                    **({"default_transaction_read_only": "on"} if read_only else {}),
                },
            },
        )
        self._autocommit = self._engine.execution_options(isolation_level="AUTOCOMMIT")

    @property
    def engine(self) -> AsyncEngine:
        """The engine itself, for migrations and tests."""
        return self._engine

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """A connection for one-statement reads on the primary. Raises DatabaseUnavailable."""
        with outages():
            async with self._autocommit.connect() as connection:
                yield connection

    @asynccontextmanager
    async def by_itself(self) -> AsyncIterator[AsyncConnection]:
        """A connection on which one statement of the gateway's own book-keeping commits by itself.

        Raises DatabaseUnavailable, also when nobody knows whether it was committed: what depends on it must not happen.
        """
        async with self.read() as connection:
            yield connection

    async def read_one(self, read: DirectRead, parameters: Mapping[str, Any]) -> AnyRow:
        """The row of a one-statement read on the primary. Raises DatabaseUnavailable."""
        with outages():
            try:
                row: AnyRow = await read.one(self._engine.sync_engine, parameters)
                return row
            except ConnectionLost:
                return await self._read_again(read, parameters)

    async def _read_again(self, read: DirectRead, parameters: Mapping[str, Any]) -> AnyRow:
        """The row, by the engine's own way: it knows what a lost connection says of the others in the pool.

        After a restart of the database all that are pooled are lost. The first that is met so makes the engine give up
        the others, and only the next try has a new one.
        """
        for tries_left in (1, 0):
            try:
                async with self._autocommit.connect() as connection:
                    row: AnyRow = (await connection.execute(read.statement, dict(parameters))).one()
                    return row
            except DBAPIError as error:
                if not tries_left or not _is_connection_loss(error):
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """A transaction without an audit record, for the gateway's own book-keeping (outbox, health)."""
        with outages():
            async with self._engine.connect() as connection:
                await connection.begin()
                yield connection
                await commit(connection)

    @asynccontextmanager
    async def change(self, permit: Permit[Operation]) -> AsyncIterator[AsyncConnection]:
        """A transaction that commits what is done in it together with the permit's audit record and the success under
        its idempotency key, or nothing of it.

        The last thing before COMMIT is to see that nothing was taken away since the permit was decided; the refusal is
        raised when it was. Raises DatabaseUnavailable when nothing was changed and CommitUnknown when nobody knows,
        OutOfTime when the request's time was over before COMMIT was sent; afterwards it is not cut off any more. Raises
        TypeError for an operation that says it changes nothing: read-only maintenance believes it (`Operation`).
        """
        operation = permit.operation
        if not operation.changes():
            raise TypeError(f"{type(operation).__name__} says it changes nothing")
        with outages():
            async with self._engine.connect() as connection:
                await connection.begin()
                yield connection
                await revalidate_decision(connection, permit)
                await audit_log.insert(connection, [permit.trail.record])
                if permit.claim is not None and isinstance(operation, HttpOperation):
                    await idempotency_claims.fulfil(
                        connection,
                        permit.claim,
                        status=operation.returns,
                        detail=permit.trail.record.detail,
                    )
                permit.deadline.let_go()
                await commit(connection)
                permit.trail.settle()
                if permit.claim is not None:
                    permit.claim.fulfilled = True

    @asynccontextmanager
    async def locked(self, names: Sequence[str]) -> AsyncIterator[AsyncConnection]:
        """A connection that holds advisory locks on these names until the end of the block, over all transactions that
        are committed inside. They are taken in one order, so that two who want many cannot wait for each other.

        Taking them and giving them back needs no transaction, which would be two more round trips each. Raises
        DatabaseUnavailable, also when somebody else holds one for too long.
        """
        with outages():
            async with self._engine.connect() as connection:
                try:
                    await _alone(connection, _LOCK, {"names": list(names)})
                    yield connection
                    await _alone(connection, _UNLOCK)
                except BaseException:
                    # Closing it gives its locks back, whatever state it is in.
                    await connection.invalidate()
                    raise

    async def ping(self) -> None:
        """Raise DatabaseUnavailable unless the database answers."""
        async with self.read() as connection:
            await connection.execute(text("select 1"))

    async def close(self) -> None:
        """Give all connections back."""
        await self._engine.dispose()


class Deadlocked(DatabaseUnavailable):
    """PostgreSQL gave the transaction up because others waited for it: nothing happened, and trying again helps."""


async def retry_serialization(attempt: Callable[[], Awaitable[Answer]], *, tries: int = 3) -> Answer:
    """Repeat a transaction that PostgreSQL gave up for a deadlock; safe because nothing of it was committed.

    Raises Deadlocked after the last try.
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
    """Commit. Raises CommitUnknown when nobody knows whether it happened."""
    try:
        await connection.commit()
    except DBAPIError as error:
        # What runs within COMMIT (deferred triggers) ended the transaction: that is known, and nothing was changed.
        if _gave_way(error) or getattr(error.orig, "sqlstate", None) == _CANCELED:
            raise Deadlocked("the database gave up the transaction when it was to be committed") from error
        raise CommitUnknown("the outcome of COMMIT is not known") from error
    except (SQLAlchemyError, OSError, TimeoutError) as error:
        raise CommitUnknown("the outcome of COMMIT is not known") from error


async def _alone(connection: AsyncConnection, statement: TextClause, values: Mapping[str, Any] | None = None) -> None:
    """Execute one statement outside of transactions, on a connection that is in none."""
    await connection.execution_options(isolation_level="AUTOCOMMIT")
    await connection.execute(statement, values)
    # Ends what SQLAlchemy takes for a transaction, and sends nothing.
    await connection.commit()
    await connection.execution_options(isolation_level="READ COMMITTED")


class outages:
    """Turns the driver's ways of saying "unreachable" into DatabaseUnavailable; other errors pass as they are."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (PoolTimeoutError, ConnectionError, OSError, TimeoutError)):
            raise DatabaseUnavailable("the database does not answer") from error
        if isinstance(error, DBAPIError) and _gave_way(error):
            raise Deadlocked("another transaction was in the way") from error
        if isinstance(error, DBAPIError) and _is_connection_loss(error):
            raise DatabaseUnavailable("the connection to the database was lost") from error


def _gave_way(error: DBAPIError) -> bool:
    """Serialization failures and deadlocks (PostgreSQL, appendix A, class 40)."""
    return getattr(error.orig, "sqlstate", None) in ("40001", "40P01")


def _is_connection_loss(error: DBAPIError) -> bool:
    state = getattr(error.orig, "sqlstate", None) or ""
    return error.connection_invalidated or state[:2] in ("08", "53", "57")
