# SPDX-License-Identifier: Apache-2.0
"""Rows of storage credentials in any secret store, and the built-in secret store in PostgreSQL.

A row exists before its content is written, and until its content is deleted. So a process that is killed at any point
leaves no content without a row:

1. `reserve` commits the row of a new id as unused (`replaced_at` is set).
2. The store writes the content.
3. The transaction that changes the warehouse marks the row as used (`use`).
4. `retire` marks a row as unused again, in the transaction that replaces the credential or deletes the warehouse.
5. `sweep` deletes the content of rows that have been unused for `UNUSED_MINUTES`, and then the rows.

A row can be marked as used only within `UNUSED_MINUTES` of its reservation, and `sweep` skips rows that an open
transaction has marked. So no step can delete the content of a credential that is used.
"""

from __future__ import annotations

import asyncio
from typing import Final
from uuid import UUID

import structlog
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.credentials import secrets as sealed_secrets
from gateway.db.credentials.secrets import POSTGRES, Sealer, SecretUnreadable
from gateway.db.engine.database import Database
from gateway.db.schema.credentials import secrets
from gateway.iceberg.errors import CatalogError
from gateway.secret_stores.port import SecretStores

_log = structlog.get_logger("db.stored_secrets")

UNUSED_MINUTES: Final = 10
"""The retention of an unused credential in minutes: longer than a request, and than a write on its way to a store."""

_LOOKED_AT: Final = 100


class CredentialExpired(CatalogError, code=503, type="ServiceUnavailableException"):
    """The transaction began too long after the credential was written. Nothing was changed."""


async def reserve(connection: AsyncConnection, store: str) -> UUID:
    """Insert an unused row for a new credential in `store`, and return its id."""
    id = uuid7()
    await connection.execute(insert(secrets).values(id=id, store=store, replaced_at=func.clock_timestamp()))
    return id


async def use(connection: AsyncConnection, id: UUID) -> None:
    """Mark a reserved credential as used. Raises CredentialExpired if `sweep` may delete it."""
    fresh = secrets.c.replaced_at > func.clock_timestamp() - _retention()
    marked = await connection.execute(update(secrets).where(secrets.c.id == id, fresh).values(replaced_at=None))
    if marked.rowcount != 1:
        raise CredentialExpired("The change took too long, so nothing was changed. Try again.")


async def is_unused(connection: AsyncConnection, id: UUID) -> bool:
    """Return True if no committed transaction uses the credential. Wait for the end of a transaction that may still
    commit.

    Call it in a transaction.
    """
    unused = select(secrets.c.id).where(secrets.c.id == id, secrets.c.replaced_at.is_not(None))
    return (await connection.execute(unused.with_for_update())).first() is not None


async def store_of(connection: AsyncConnection, id: UUID) -> str:
    """Return the name of the store that holds a credential. Raises SecretUnreadable if it does not exist."""
    name = (await connection.execute(select(secrets.c.store).where(secrets.c.id == id))).scalar_one_or_none()
    if name is None:
        raise SecretUnreadable("the secret does not exist")
    return str(name)


async def sweep(database: Database, stores: SecretStores, *, limit: int) -> int:
    """Delete up to `limit` credentials outside of PostgreSQL that have been unused for long. Return their number.

    If a store does not respond, its credentials are left for a later call. Raises the errors of the database.
    """
    overdue = (
        select(secrets.c.id, secrets.c.store)
        .where(secrets.c.store != POSTGRES, secrets.c.replaced_at < func.clock_timestamp() - _retention())
        .order_by(secrets.c.replaced_at)
        .limit(limit)
        # An open transaction that marks a row as used has locked the row, so it is skipped.
        .with_for_update(skip_locked=True)
    )
    async with database.transaction() as connection:
        rows = [(row.id, row.store) for row in await connection.execute(overdue)]
    gone: list[UUID] = []
    failed: set[str] = set()
    for id, name in rows:
        if name in failed:
            continue
        try:
            await stores.named(name).delete(id)
        except CatalogError as error:
            failed.add(name)
            _log.warning("secrets.left_behind", store=name, reason=getattr(error, "reason", error.message))
        else:
            gone.append(id)
    if gone:
        async with database.transaction() as connection:
            await connection.execute(delete(secrets).where(secrets.c.id.in_(gone)))
    return len(gone)


class PostgresSecrets:
    """The secret store in PostgreSQL. Its content is encrypted with the keys of the settings (`Sealer`)."""

    name = POSTGRES

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer

    async def put(self, id: UUID, plain: bytes) -> None:
        """Encrypt the content and write it into the reserved row."""
        sealed = await asyncio.to_thread(self._sealer.seal, plain)
        async with self._database.transaction() as connection:
            await connection.execute(
                update(secrets).where(secrets.c.id == id, secrets.c.sealed.is_(None)).values(sealed=sealed)
            )

    async def get(self, id: UUID) -> bytes:
        """Return the decrypted content. Raises SecretUnreadable if it does not exist or no key decrypts it."""
        async with self._database.read() as connection:
            return await sealed_secrets.load(connection, self._sealer, id)

    async def delete(self, id: UUID) -> None:
        """Delete the row with its content, unless the credential is used."""
        async with self._database.transaction() as connection:
            await connection.execute(delete(secrets).where(secrets.c.id == id, secrets.c.replaced_at.is_not(None)))

    async def check(self) -> None:
        """Raise SecretUnreadable if none of the newest hundred credentials can be decrypted.

        In that case the key is not that of this database, and every load would fail. If only some credentials are
        unreadable, they may have been lost earlier, and nothing is raised.
        """
        async with self._database.read() as connection:
            found = await sealed_secrets.newest(connection, limit=_LOOKED_AT)
        if found and not await asyncio.to_thread(lambda: any(map(self._sealer.opens, found))):
            raise SecretUnreadable(
                "None of the stored credentials of warehouses can be decrypted: PG_ENCRYPTION_KEY is not the key "
                "with which they were encrypted. Set that key."
            )

    async def close(self) -> None:
        """Do nothing, because the owner of the database closes it."""


def _retention() -> object:
    return func.make_interval(0, 0, 0, 0, 0, UNUSED_MINUTES)
