# SPDX-License-Identifier: Apache-2.0
"""Revoke ownership created by transactions that were in flight when their user was deleted or deactivated.

The creator of an object owns it. A creation that began before the deletion of its creator may be committed after the
user's grants were ended. A returning user with the same id would then own the object. So a deletion records the user.
The record stays until all transactions that were open at the deletion have ended, and the grants that they made are
ended too. The deletion itself does this, or a repeated deletion, or a background task.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import structlog
from sqlalchemy import ColumnElement, delete, exists, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.database import Database
from gateway.db.grants.access_requests import withdraw_of_deleted
from gateway.db.grants.break_glass import end_of_deleted
from gateway.db.schema.changes import outbox as outbox_table
from gateway.db.schema.principals import pending_user_deletions
from gateway.db.tuples import outbox
from gateway.db.tuples.delivery import TupleDelivery
from gateway.db.tuples.outbox import Pending
from gateway.db.tuples.ownership import record_created_grants_ended, record_principal_deleted, record_suspended

_log = structlog.get_logger("db.latecomers")

_LONGEST_WAIT_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.01
_REQUEST_GRACE_SECONDS: Final = 10.0
_AT_ONCE: Final = 100

_IN_FORCE: Final = ~exists().where(
    outbox_table.c.takes_away,
    outbox_table.c.subject_type == PrincipalType.USER.value,
    outbox_table.c.subject_id == pending_user_deletions.c.user_id,
)
_NEXT: Final = text("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
_OLDEST: Final = text("select pg_snapshot_xmin(pg_current_snapshot())::text::bigint")


async def record_deletion(connection: AsyncConnection, user: Principal, *, by: str) -> list[Pending]:
    """End all grants and requests of a deleted user and record the pending cleanup. Return the revocations to deliver.

    They include those of an earlier deletion. Call it after the user's row is deleted.
    """
    await record_principal_deleted(connection, user, by=by)
    await _end_requests(connection, user.id, by=by)
    values = {"deleted_by": by, "deleted_at": func.clock_timestamp(), "in_force_at": None}
    noted = insert(pending_user_deletions).values(user_id=user.id, **values)
    await connection.execute(noted.on_conflict_do_update(index_elements=["user_id"], set_=values))
    return await outbox.pending_of_user(connection, user.id)


async def expected(connection: AsyncConnection, user_id: str) -> bool:
    """Return True if the user was deleted and the cleanup is still pending."""
    return (
        await connection.execute(select(pending_user_deletions.c.user_id).where(_named([user_id])))
    ).one_or_none() is not None


async def expected_of(connection: AsyncConnection, provider_id: str) -> Sequence[str]:
    """Return the users of a provider whose deletion is in force and whose cleanup is still pending."""
    of_provider = pending_user_deletions.c.user_id.startswith(f"{provider_id}~", autoescape=True)
    return (
        (await connection.execute(select(pending_user_deletions.c.user_id).where(of_provider, _IN_FORCE)))
        .scalars()
        .all()
    )


async def revoke_created(database: Database, delivery: TupleDelivery, users: Sequence[str]) -> None:
    """End the grants that these deleted users got from their own transactions in flight.

    Call it after the delivery of the deletions. The revisions have then changed, so a transaction that begins later is
    decided again before its COMMIT and refused (`decision_revalidation.py`). It waits up to five seconds for earlier
    transactions. If one takes longer, the cleanup is repeated in the background. Raises DecisionEngineUnavailable,
    DatabaseUnavailable and CommitUnknown.
    """
    if not users:
        return
    in_force = {"in_force_at": func.coalesce(pending_user_deletions.c.in_force_at, func.clock_timestamp())}
    async with database.transaction() as connection:
        await connection.execute(update(pending_user_deletions).where(_named(users)).values(in_force))
    all_ended = await _wait_for_transactions(database)
    if not all_ended:
        _log.warning("latecomers.not_waited_for", users=len(users))
    async with database.transaction() as connection:
        pending: list[Pending] = []
        held = select(pending_user_deletions).where(_named(users), pending_user_deletions.c.in_force_at.is_not(None))
        for row in (await connection.execute(held.order_by(pending_user_deletions.c.user_id).with_for_update())).all():
            user = Principal(PrincipalType.USER, row.user_id)
            pending += await record_created_grants_ended(connection, user, until=row.in_force_at, by=row.deleted_by)
            await _end_requests(connection, row.user_id, by=row.deleted_by, until=row.in_force_at)
            if all_ended:
                await connection.execute(delete(pending_user_deletions).where(_named([row.user_id])))
    await delivery.deliver(pending)


async def revoke_due(database: Database, delivery: TupleDelivery) -> None:
    """Run `revoke_created` for deletions that did not finish, because of an outage or a killed process.

    Deletions that are not yet in force are left for later. Raises the same errors.
    """
    ended = pending_user_deletions.c.deleted_at < func.clock_timestamp() - func.make_interval(
        0, 0, 0, 0, 0, 0, _REQUEST_GRACE_SECONDS
    )
    due = (
        select(pending_user_deletions.c.user_id)
        .where(ended, _IN_FORCE)
        .order_by(pending_user_deletions.c.deleted_at)
        .limit(_AT_ONCE)
    )
    async with database.read() as connection:
        users = (await connection.execute(due)).scalars().all()
    await revoke_created(database, delivery, users)


async def suspend_grants(database: Database, delivery: TupleDelivery, user_id: str) -> None:
    """Suspend the grants that a deactivated user got from transactions in flight. The grants are not ended.

    Call it after the delivery of the deactivation, for the reason and with the errors of `revoke_created`.
    """
    if not await _wait_for_transactions(database):
        _log.warning("latecomers.not_waited_for", users=1)
    async with database.transaction() as connection:
        pending = await record_suspended(connection, user_id, inactive=True, own=True)
    await delivery.deliver(pending)


async def _end_requests(connection: AsyncConnection, user: str, *, by: str, until: datetime | None = None) -> None:
    """End the pending access requests and open break-glass activations of a deleted user."""
    await withdraw_of_deleted(connection, user, by=by, until=until)
    await end_of_deleted(connection, user, by=by, until=until)


def _named(users: Sequence[str]) -> ColumnElement[bool]:
    return pending_user_deletions.c.user_id.in_(users)


async def _wait_for_transactions(database: Database) -> bool:
    """Wait until every transaction that is in flight now has ended. Return False if one still runs after five
    seconds.
    """
    last = time.monotonic() + _LONGEST_WAIT_SECONDS
    async with database.read() as connection:
        begun_before = (await connection.execute(_NEXT)).scalar_one()
        while (await connection.execute(_OLDEST)).scalar_one() < begun_before:
            if time.monotonic() >= last:
                return False
            await asyncio.sleep(_PAUSE_SECONDS)
    return True
