# SPDX-License-Identifier: Apache-2.0
"""Statements on notices."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import delete as delete_from
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.rows import columns_for, fetch_all, fetch_optional
from gateway.db.schema.warehouses import notices
from gateway.iceberg.identifiers import fold


class NoticeRow(NamedTuple):
    """A notice."""

    id: UUID
    name: str
    text: str
    created_at: datetime


_COLUMNS: Final = columns_for(NoticeRow, notices)


async def create(connection: AsyncConnection, *, id: UUID, project_id: str, name: str, text: str) -> NoticeRow | None:
    """Insert a notice and return its row. None if its name is taken, irrespective of letter case."""
    statement = insert(notices).values(id=id, project_id=project_id, name=name, name_key=fold(name), text=text)
    return await fetch_optional(connection, NoticeRow, statement.on_conflict_do_nothing().returning(*_COLUMNS))


async def get(connection: AsyncConnection, id: UUID) -> NoticeRow | None:
    """Return the row of a notice, or None."""
    return await fetch_optional(connection, NoticeRow, select(*_COLUMNS).where(notices.c.id == id))


async def page(connection: AsyncConnection, project_id: str, *, after: UUID | None, limit: int) -> Sequence[NoticeRow]:
    """Return the notices of a project in order of their ids, starting after `after`."""
    statement = select(*_COLUMNS).where(notices.c.project_id == project_id).order_by(notices.c.id).limit(limit)
    if after is not None:
        statement = statement.where(notices.c.id > after)
    return await fetch_all(connection, NoticeRow, statement)


async def delete(connection: AsyncConnection, id: UUID) -> str | None:
    """Delete a notice and return the id of its project, None if it is absent.

    Call `ownership.record_deleted` in the same transaction afterwards.
    """
    deleted = delete_from(notices).where(notices.c.id == id).returning(notices.c.project_id)
    return (await connection.execute(deleted)).scalar_one_or_none()
