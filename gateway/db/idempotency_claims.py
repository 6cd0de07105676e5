# SPDX-License-Identifier: Apache-2.0
"""Statements on idempotency keys: claiming one, fulfilling it with a change, giving it up."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from sqlalchemy import bindparam, delete, func, select, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.idempotency import Claim, RepeatableRequest
from gateway.db.rows import AnyRow
from gateway.db.schema.idempotency import idempotency
from gateway.iceberg.errors import RequestInProgress

_IN_PROGRESS = "A request with this idempotency key is being carried out; ask again when it is done."


# Losing a claim in a crash of the database only frees the key: nobody has to wait for the disk. The setting is made
# before there is a row to insert, and ends with the transaction that the statement is by itself.
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

_STANDS = select(idempotency).where(idempotency.c.scope == bindparam("scope"))


async def claim(
    connection: AsyncConnection, request: RepeatableRequest, attempt: UUID, *, lease_seconds: float
) -> AnyRow | None:
    """Take the key unless somebody has it. None when it was taken, else the row that stands there.

    An attempt that never ended frees its key after the lease, a success after its lifetime; the row is then taken over.
    On a connection where each statement commits by itself (`Database.by_itself`).
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
    # A statement of its own: it sees what the claim waited for, another attempt that was being recorded.
    row: AnyRow | None = (await connection.execute(_STANDS, {"scope": request.scope})).one_or_none()
    if row is None:
        raise RequestInProgress(_IN_PROGRESS)
    return row


_FULFIL = text(
    """
    update idempotency set status = :status, detail = :detail, written_in = pg_current_xact_id()::text::bigint,
        expires_at = clock_timestamp() + make_interval(secs => :keep)
    where scope = :scope and attempt = :attempt
    """
).bindparams(bindparam("detail", type_=JSONB))


async def fulfil(connection: AsyncConnection, claim: Claim, *, status: int, detail: Mapping[str, str]) -> None:
    """Remember the success in the transaction of its change. Raises RequestInProgress when another attempt took over:
    then this one must not happen.
    """
    values = {
        "scope": claim.scope,
        "attempt": claim.attempt,
        "status": status,
        "detail": dict(detail),
        "keep": claim.keep_seconds,
    }
    if (await connection.execute(_FULFIL, values)).rowcount != 1:
        raise RequestInProgress(_IN_PROGRESS)


_GIVE_UP = text("delete from idempotency where scope = :scope and attempt = :attempt and status is null")


async def give_up(connection: AsyncConnection, claim: Claim) -> None:
    """Free the key of an attempt that changed nothing."""
    await connection.execute(_GIVE_UP, {"scope": claim.scope, "attempt": claim.attempt})


async def sweep(connection: AsyncConnection, *, limit: int) -> int:
    """Remove keys whose time is over; how many."""
    old = select(idempotency.c.scope).where(idempotency.c.expires_at < func.clock_timestamp()).limit(limit)
    result = await connection.execute(
        delete(idempotency).where(idempotency.c.scope.in_(old.with_for_update(skip_locked=True).scalar_subquery()))
    )
    return int(result.rowcount)
