# SPDX-License-Identifier: Apache-2.0
"""Statements on the row of the server. There is exactly one such row."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.schema.warehouses import server

# The identity of the cluster and of this table. If a dump is restored, the table is another one, in the same cluster or
# another.
_HOME = "select (select system_identifier from pg_control_system())::text || '/' || 'server'::regclass::oid::text"


class RestoredDatabase(Exception):
    """The database was restored from a backup, or moved, after a gateway served it, and was not reconciled since."""

    def __init__(self) -> None:
        super().__init__(
            "the database was restored from a backup, or moved, since a gateway last used it. It may contain grants "
            "that were revoked after the backup. List them with `lakegate authz reconcile --dry-run`: a `missing` "
            "grant was revoked. Then run `lakegate authz reconcile --restored revoke` to revoke them again, or "
            '`--restored give-back` to keep them. Gateways serve after that (docs/backup.md, "After a restore")'
        )


async def require_same_database(connection: AsyncConnection) -> None:
    """Raise RestoredDatabase if the database is not the one that a gateway last served."""
    stored = (await connection.execute(select(server.c.home))).scalar_one_or_none()
    if stored is not None and stored != (await connection.execute(text(_HOME))).scalar_one():
        raise RestoredDatabase


async def settle(connection: AsyncConnection) -> None:
    """Record the current identity of the database as that which a gateway serves."""
    await connection.execute(update(server).values(home=(await connection.execute(text(_HOME))).scalar_one()))


async def ensure(connection: AsyncConnection, id: UUID | None) -> UUID:
    """Return the id of the server row. Create the row at the first start.

    Raises ValueError if `id` is configured and another id is stored.
    """
    await connection.execute(
        insert(server).values(id=id or uuid7(), revision=uuid7()).on_conflict_do_nothing(index_elements=["singleton"])
    )
    stored: UUID = (await connection.execute(select(server.c.id))).scalar_one()
    if (await connection.execute(select(server.c.home))).scalar_one() is None:
        await settle(connection)
    if id is not None and stored != id:
        raise ValueError(
            f"this database belongs to server {stored}, but the settings name server {id}; correct "
            "LAKEGATE__SERVER_ID or the database"
        )
    return stored


async def stored_id(connection: AsyncConnection) -> UUID | None:
    """Return the id in the server row. Return None if there is no row."""
    id: UUID | None = (await connection.execute(select(server.c.id))).scalar_one_or_none()
    return id


async def claim_bootstrap(connection: AsyncConnection, user_id: str) -> bool:
    """Mark the server as bootstrapped. Return False if it already is, or if only another user may bootstrap it.

    Of two concurrent calls, one waits for the other and returns False.
    """
    free = server.c.bootstrapped_at.is_(None)
    theirs = server.c.bootstrap_for.is_(None) | (server.c.bootstrap_for == user_id)
    result = await connection.execute(
        update(server).where(free, theirs).values(bootstrapped_at=func.clock_timestamp(), bootstrap_for=None)
    )
    return result.rowcount == 1


async def needs_bootstrap(connection: AsyncConnection) -> bool:
    """Return True if the server is not bootstrapped."""
    return (await connection.execute(select(server.c.bootstrapped_at))).scalar_one() is None


async def reopen_bootstrap(connection: AsyncConnection, user_id: str | None) -> None:
    """Allow one more bootstrap. If a user is given, only this user may do it."""
    await connection.execute(update(server).values(bootstrapped_at=None, bootstrap_for=user_id))
