# SPDX-License-Identifier: Apache-2.0
"""Read lists, searches, statistics and histories from a replica, which may lag behind the primary.

No decision, credential, precondition or change depends on such a read: these use `Database`. Decisions on the primary
determine which rows of a list the caller receives.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar
from uuid import UUID

import structlog
from sqlalchemy.exc import DBAPIError

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.db.engine.database import Connection, Database
from gateway.db.warehouses import servers

Answer = TypeVar("Answer")

_RETRY_SECONDS: Final = 10.0

_log = structlog.get_logger("db.read_pool")


class OtherServer(Exception):
    """The read database is not a replica of the primary, because its tables belong to another server."""


class ReadPool:
    """The primary, and a replica that serves reads while it is available.

    `server_id` is the id of the primary's server. After a failure the replica is not used for `retry_seconds`.
    """

    def __init__(
        self,
        primary: Database,
        replica: Database | None,
        server_id: UUID,
        *,
        retry_seconds: float = _RETRY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._primary = primary
        self._replica = replica
        self._server_id = server_id
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._retry_at = 0.0
        self._verified = False

    async def run(self, query: Callable[[Connection], Awaitable[Answer]], *, in_transaction: bool = False) -> Answer:
        """Run a read-only query on the replica if it is in use, else on the primary.

        If the replica fails, the query runs again on the primary. Raises DatabaseUnavailable if the primary is not
        available either, and the errors of `query`.
        """
        if self._replica is None or self._clock() < self._retry_at:
            return await _run_on(self._primary, query, in_transaction)
        try:
            return await self._run_on_replica(self._replica, query, in_transaction)
        except (DatabaseUnavailable, CommitUnknown, OtherServer) as failed:
            self._leave_alone(failed)
            return await _run_on(self._primary, query, in_transaction)
        except DBAPIError as failed:
            # The replica may lack a migration. If the query fails on the primary as well, the error is raised and the
            # replica stays in use.
            answer = await _run_on(self._primary, query, in_transaction)
            self._leave_alone(failed)
            return answer

    async def _run_on_replica(
        self, replica: Database, query: Callable[[Connection], Awaitable[Answer]], in_transaction: bool
    ) -> Answer:
        if not self._verified:
            # A replica behind a wrong URL would show the users and tables of another installation.
            found = await _run_on(replica, servers.stored_id, in_transaction=False)
            if found != self._server_id:
                raise OtherServer(
                    f"the read database belongs to server {found}, but the primary belongs to server {self._server_id}"
                )
            self._verified = True
        return await _run_on(replica, query, in_transaction)

    def _leave_alone(self, failed: Exception) -> None:
        self._verified = False
        self._retry_at = self._clock() + self._retry_seconds
        reason = str(failed) if isinstance(failed, OtherServer) else type(failed).__name__
        _log.warning("read_pool.replica_failed", reason=reason, retry_in_seconds=self._retry_seconds)


async def _run_on(database: Database, query: Callable[[Connection], Awaitable[Answer]], in_transaction: bool) -> Answer:
    async with database.transaction() if in_transaction else database.read() as connection:
        return await query(connection)
