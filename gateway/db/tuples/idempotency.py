# SPDX-License-Identifier: Apache-2.0
"""Store idempotency keys in PostgreSQL."""

from __future__ import annotations

import structlog
from uuid_utils.compat import uuid7

from gateway.access.dependency_errors import CommitUnknown, DatabaseUnavailable
from gateway.access.idempotency import Claim, RecordedSuccess, RepeatableRequest
from gateway.db.engine import idempotency_claims
from gateway.db.engine.database import Database
from gateway.db.tuples import outbox
from gateway.db.tuples.delivery import TupleDelivery
from gateway.iceberg.errors import RequestInProgress, UnprocessableEntityException

_log = structlog.get_logger("db.idempotency")


class Idempotency:
    """Implements `gateway.access.idempotency.IdempotencyStore`.

    `keep_seconds` is the lifetime that clients are told, plus a grace period. `lease_seconds` is the time after which
    the key of a killed attempt is free. It exceeds the time limit of a request. An attempt whose lease ended cannot
    commit its change.
    """

    def __init__(
        self, database: Database, delivery: TupleDelivery, *, keep_seconds: float, lease_seconds: float = 60.0
    ) -> None:
        self._database = database
        self._delivery = delivery
        self._keep_seconds = keep_seconds
        self._lease_seconds = lease_seconds

    async def begin(self, request: RepeatableRequest) -> Claim | RecordedSuccess:
        """Claim the key. If a result is stored under it, return the result instead.

        Raises RequestInProgress if another attempt has claimed the key, and UnprocessableEntityException if the key was
        used with another request body.
        """
        attempt = uuid7()
        async with self._database.autocommit() as connection:
            row = await idempotency_claims.claim(connection, request, attempt, lease_seconds=self._lease_seconds)
        if row is None:
            return Claim(request.scope, attempt, self._keep_seconds)
        if row.body_digest != request.digest:
            raise UnprocessableEntityException(
                "This idempotency key was used with another request body. Use a new key for a new request."
            )
        if row.status is None:
            raise RequestInProgress(
                "A request with this idempotency key is still in progress. Send the request again when it has finished."
            )
        return RecordedSuccess(row.status, row.detail or {}, row.written_in)

    async def release(self, claim: Claim) -> None:
        """Release the key. If the database does not respond, the key becomes free when the lease ends."""
        try:
            async with self._database.read() as connection:
                await idempotency_claims.release(connection, claim)
        except (DatabaseUnavailable, CommitUnknown) as left:
            _log.warning("idempotency.key_left_to_its_lease", reason=str(left))

    async def finish(self, recorded_success: RecordedSuccess) -> None:
        """Deliver the keys that the recorded change left in the outbox."""
        async with self._database.read() as connection:
            pending = await outbox.written_in(connection, recorded_success.transaction)
        await self._delivery.deliver(pending)
