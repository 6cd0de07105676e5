# SPDX-License-Identifier: Apache-2.0
"""Statements on roles."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.schema import roles


async def exist(connection: AsyncConnection, ids: Sequence[str]) -> set[str]:
    """Which of the ids are roles."""
    if not ids:
        return set()
    found = await connection.execute(select(roles.c.id).where(roles.c.id.in_([UUID(id) for id in ids])))
    return {str(row.id) for row in found}
