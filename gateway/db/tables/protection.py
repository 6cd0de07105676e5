# SPDX-License-Identifier: Apache-2.0
"""Statements on the protection of namespaces, tables and views."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import TABULARS, ObjectKey, ObjectType
from gateway.db.pools.rows import AnyRow
from gateway.db.schema.tables import LIVE, namespaces, tables

_TABLES = {ObjectType.NAMESPACE: namespaces, **dict.fromkeys(TABULARS, tables)}


async def of(connection: AsyncConnection, on: ObjectKey) -> AnyRow | None:
    """Return (protected, updated_at), None if the object does not exist."""
    table = _TABLES[on.type]
    statement = select(table.c.protected, table.c.updated_at).where(table.c.id == UUID(on.id))
    if table is tables:
        statement = statement.where(LIVE)
    return (await connection.execute(statement)).one_or_none()


async def protect(connection: AsyncConnection, on: ObjectKey, protected: bool) -> AnyRow | None:
    """Set the protection. Return (protected, updated_at), None if the object does not exist."""
    table = _TABLES[on.type]
    statement = (
        update(table)
        .where(table.c.id == UUID(on.id))
        .values(protected=protected, updated_at=func.clock_timestamp())
        .returning(table.c.protected, table.c.updated_at)
    )
    if table is tables:
        statement = statement.where(LIVE)
    return (await connection.execute(statement)).one_or_none()
