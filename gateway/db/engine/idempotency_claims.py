# SPDX-License-Identifier: Apache-2.0
"""Statements that claim and release idempotency keys. A claimed key belongs to one request until its change ends.

The last statement of a change stores its result under the key (`decision_revalidation`).
"""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, delete, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.idempotency import Claim, RepeatableRequest
from gateway.db.pools.rows import columns_for, fetch_optional
from gateway.db.schema.changes import idempotency
from gateway.iceberg.errors import RequestInProgress

_IN_PROGRESS = "A request with this idempotency key is still in progress. Send the request again when it has finished."


# A crash of the database may lose a claim, which only frees the key; so the commit does not wait for the disk. The
# setting is made before the row is inserted. It ends with the transaction, which is this statement.
_CLAIM = text(
    """
    with lazily as materialized (select set_config('synchronous_commit', 'off', true))
    insert into idempotency (scope, body_digest, attempt, actor_id, operation, expires_at)
    select cast(:scope as bytea), cast(:digest as bytea), cast(:attempt as uuid), cast(:actor_id as text),
        cast(:operation as text), clock_timestamp() + make_interval(secs => :lease)
    from lazily
    on conflict (scope) do update set
        body_digest = excluded.body_digest, attempt = excluded.attempt, actor_id = excluded.actor_id,
        operation = excluded.operation, expires_at = clock_timestamp() + make_interval(secs => :lease),
        status = null, detail = null, written_in = null, created_at = clock_timestamp()
    where idempotency.expires_at < clock_timestamp()
    """
)


class Claimed(NamedTuple):
    """A key that another attempt holds. `status` is None while that attempt has no result."""

    body_digest: bytes
    status: int | None
    detail: dict[str, Any] | None
    written_in: int


_LEASE_IS_VALID = select(*columns_for(Claimed, idempotency)).where(idempotency.c.scope == bindparam("scope"))


async def claim(
    connection: AsyncConnection, request: RepeatableRequest, attempt: UUID, *, lease_seconds: float
) -> Claimed | None:
    """Claim the key. Return None on success. If it is claimed or used already, return the existing row.

    The key of an attempt without a result is free after the lease, and the key of a success after its lifetime. The row
    is then overwritten. Use a connection in autocommit mode (`Database.autocommit`).
    """
    values = {
        "scope": request.scope,
        "digest": request.digest,
        "attempt": attempt,
        "actor_id": request.actor.id,
        "operation": request.operation,
        "lease": lease_seconds,
    }
    if (await connection.execute(_CLAIM, values)).rowcount == 1:
        return None
    # A separate statement, because it sees the row of a concurrent attempt for which the claim waited.
    row = await fetch_optional(connection, Claimed, _LEASE_IS_VALID, {"scope": request.scope})
    if row is None:
        raise in_progress()
    return row


def in_progress() -> RequestInProgress:
    """Return the error for a key that another attempt has claimed: this attempt must not commit its change."""
    return RequestInProgress(_IN_PROGRESS)


async def release(connection: AsyncConnection, claim: Claim) -> None:
    """Release the key after an attempt that changed nothing."""
    own = (idempotency.c.scope == claim.scope, idempotency.c.attempt == claim.attempt)
    await connection.execute(delete(idempotency).where(*own, idempotency.c.status.is_(None)))


async def sweep(connection: AsyncConnection, *, limit: int) -> int:
    """Delete up to `limit` keys whose lifetime or lease ended. Return their number."""
    old = select(idempotency.c.scope).where(idempotency.c.expires_at < func.clock_timestamp()).limit(limit)
    result = await connection.execute(
        delete(idempotency).where(idempotency.c.scope.in_(old.with_for_update(skip_locked=True).scalar_subquery()))
    )
    return int(result.rowcount)
