# SPDX-License-Identifier: Apache-2.0
"""Statements on idempotency keys: claiming one, fulfilling it with a change, giving it up."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from sqlalchemy import delete, func, literal_column, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.repetition import Claim, RepeatableRequest
from gateway.db.rows import AnyRow
from gateway.db.schema.idempotency import idempotency
from gateway.iceberg.errors import RequestInProgress

_IN_PROGRESS = "A request with this idempotency key is being carried out; ask again when it is done."


async def claim(
    connection: AsyncConnection, request: RepeatableRequest, attempt: UUID, *, lease_seconds: float
) -> AnyRow | None:
    """Take the key unless somebody has it. None when it was taken, else the row that stands there.

    An attempt that never ended frees its key after the lease, a success after its lifetime; the row is then taken over.
    """
    values = {
        "body_digest": request.digest,
        "attempt": attempt,
        "actor_id": request.actor.id,
        "operation": request.operation,
        "expires_at": func.clock_timestamp() + _seconds(lease_seconds),
    }
    taking = insert(idempotency).values(scope=request.scope, **values)
    again = {**values, "status": None, "detail": None, "written_in": None, "created_at": func.clock_timestamp()}
    statement = taking.on_conflict_do_update(
        index_elements=["scope"], set_=again, where=idempotency.c.expires_at < func.clock_timestamp()
    ).returning(idempotency.c.attempt)
    # Losing a claim in a crash of the database only frees the key: nobody has to wait for the disk here.
    await connection.execute(text("set local synchronous_commit = off"))
    if (await connection.execute(statement)).one_or_none() is not None:
        return None
    found = select(idempotency).where(idempotency.c.scope == request.scope)
    row: AnyRow | None = (await connection.execute(found)).one_or_none()
    if row is None:
        raise RequestInProgress(_IN_PROGRESS)
    return row


async def fulfil(connection: AsyncConnection, claim: Claim, *, status: int, detail: Mapping[str, str]) -> None:
    """Remember the success in the transaction of its change. Raises RequestInProgress when another attempt took over:
    then this one must not happen.
    """
    result = await connection.execute(
        update(idempotency)
        .where(idempotency.c.scope == claim.scope, idempotency.c.attempt == claim.attempt)
        .values(
            status=status,
            detail=dict(detail),
            written_in=literal_column("pg_current_xact_id()::text::bigint"),
            expires_at=func.clock_timestamp() + _seconds(claim.keep_seconds),
        )
    )
    if result.rowcount != 1:
        raise RequestInProgress(_IN_PROGRESS)


async def give_up(connection: AsyncConnection, claim: Claim) -> None:
    """Free the key of an attempt that changed nothing."""
    await connection.execute(
        delete(idempotency).where(
            idempotency.c.scope == claim.scope, idempotency.c.attempt == claim.attempt, idempotency.c.status.is_(None)
        )
    )


async def sweep(connection: AsyncConnection, *, limit: int) -> int:
    """Remove keys whose time is over; how many."""
    old = select(idempotency.c.scope).where(idempotency.c.expires_at < func.clock_timestamp()).limit(limit)
    result = await connection.execute(
        delete(idempotency).where(idempotency.c.scope.in_(old.with_for_update(skip_locked=True).scalar_subquery()))
    )
    return int(result.rowcount)


def _seconds(seconds: float) -> object:
    return func.make_interval(0, 0, 0, 0, 0, 0, seconds)
