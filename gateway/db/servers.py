# SPDX-License-Identifier: Apache-2.0
"""Statements on the one server row."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.rows import AnyRow
from gateway.db.schema import server


async def ensure(connection: AsyncConnection, id: UUID | None) -> UUID:
    """The id of the server row, made on first start. Raises ValueError when another id than the configured one is
    stored.
    """
    await connection.execute(
        insert(server).values(id=id or uuid7(), revision=uuid7()).on_conflict_do_nothing(index_elements=["singleton"])
    )
    stored: UUID = (await connection.execute(select(server.c.id))).scalar_one()
    if id is not None and stored != id:
        raise ValueError(f"this database belongs to server {stored}, the settings name server {id}")
    return stored


async def read(connection: AsyncConnection) -> AnyRow:
    """id, bootstrapped_at, revision."""
    return (await connection.execute(select(server))).one()


async def claim_bootstrap(connection: AsyncConnection) -> bool:
    """Mark the server bootstrapped; False when it was already. Two at once wait for each other and one gets False."""
    result = await connection.execute(
        update(server).where(server.c.bootstrapped_at.is_(None)).values(bootstrapped_at=func.clock_timestamp())
    )
    return result.rowcount == 1
