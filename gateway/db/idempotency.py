# SPDX-License-Identifier: Apache-2.0
"""The memory of repeatable requests on PostgreSQL."""

from __future__ import annotations

import structlog
from uuid_utils.compat import uuid7

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.access.idempotency import Claim, Remembered, RepeatableRequest
from gateway.db import idempotency_claims, outbox
from gateway.db.delivery import TupleDelivery
from gateway.db.engine import Database
from gateway.iceberg.errors import RequestInProgress, UnprocessableEntityException

_log = structlog.get_logger("db.idempotency")


class Idempotency:
    """Implements `gateway.access.idempotency.Repetitions`.

    `keep_seconds` is the lifetime that is advertised plus grace; `lease_seconds` bounds how long the key of a killed
    attempt stays taken: longer than any request may run, because its owner is refused the change when it is over.
    """

    def __init__(
        self, database: Database, delivery: TupleDelivery, *, keep_seconds: float, lease_seconds: float = 60.0
    ) -> None:
        self._database = database
        self._delivery = delivery
        self._keep_seconds = keep_seconds
        self._lease_seconds = lease_seconds

    async def begin(self, request: RepeatableRequest) -> Claim | Remembered:
        """Claim the key, or tell what is remembered. Raises RequestInProgress, UnprocessableEntityException."""
        attempt = uuid7()
        async with self._database.by_itself() as connection:
            row = await idempotency_claims.claim(connection, request, attempt, lease_seconds=self._lease_seconds)
        if row is None:
            return Claim(request.scope, attempt, self._keep_seconds)
        if row.body_digest != request.digest:
            raise UnprocessableEntityException("This idempotency key was used with another request body.")
        if row.status is None:
            raise RequestInProgress(
                "A request with this idempotency key is being carried out; ask again when it is done."
            )
        return Remembered(row.status, row.detail or {}, row.written_in)

    async def give_up(self, claim: Claim) -> None:
        """Free the key; a database that does not answer leaves it to the lease."""
        try:
            async with self._database.read() as connection:
                await idempotency_claims.give_up(connection, claim)
        except (DatabaseUnavailable, CommitUnknown) as left:
            _log.warning("idempotency.key_left_to_its_lease", reason=str(left))

    async def finish(self, remembered: Remembered) -> None:
        """Deliver what the remembered change left in the outbox."""
        async with self._database.read() as connection:
            pending = await outbox.written_in(connection, remembered.transaction)
        await self._delivery.deliver(pending)
