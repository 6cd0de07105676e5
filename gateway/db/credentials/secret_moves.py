# SPDX-License-Identifier: Apache-2.0
"""Statements that move storage credentials between secret stores (`gateway.features.credentials.encryption_keys`)."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.credentials import secrets as sealed_secrets
from gateway.db.credentials.credentials import WrittenCredential
from gateway.db.schema.credentials import secrets
from gateway.db.schema.warehouses import warehouses


async def outside(connection: AsyncConnection, store: str) -> Sequence[UUID]:
    """Return the ids of all credentials of warehouses that are in another secret store than `store`."""
    query = (
        select(secrets.c.id)
        .join(warehouses, warehouses.c.secret_id == secrets.c.id)
        .where(secrets.c.store != store)
        .order_by(secrets.c.id)
    )
    return list((await connection.execute(query)).scalars())


async def replace(connection: AsyncConnection, id: UUID, written: WrittenCredential) -> int:
    """Let the warehouse with the credential `id` use `written`, a copy of it, and mark the old credential as unused.

    Return the number of changed warehouses. It is 0 if the credential was replaced or the warehouse was deleted
    meanwhile. Then the copy stays unused and is deleted like every unused credential.
    """
    changed = update(warehouses).where(warehouses.c.secret_id == id).values(secret_id=written.id)
    count = (await connection.execute(changed)).rowcount
    if count:
        await written.use(connection)
        await sealed_secrets.retire(connection, id)
    return int(count)
