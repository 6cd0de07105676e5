# SPDX-License-Identifier: Apache-2.0
"""Statements on views. They differ from those on tables, because the location of a view may change.

The rows of views are in the database table `tables`.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import func, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.schema.tables import tables
from gateway.db.tables.excerpts import document_values
from gateway.db.tables.tables import clashes


async def swap(
    connection: AsyncConnection,
    id: UUID,
    *,
    from_version: int,
    location: str,
    location_key: str,
    metadata_location: str,
    metadata: bytes,
) -> bool:
    """Change the pointer and the location of a view if its version is still `from_version`.

    Return True if they were changed. Raises Clash if the location is taken.
    """
    statement = (
        update(tables)
        .where(tables.c.id == id, tables.c.version == from_version, tables.c.deleted_at.is_(None))
        .values(
            location=location,
            location_key=location_key,
            version=from_version + 1,
            updated_at=func.clock_timestamp(),
            **await document_values("view", metadata_location, metadata),
        )
    )
    with clashes():
        return (await connection.execute(statement)).rowcount == 1
