# SPDX-License-Identifier: Apache-2.0
"""Statements on roles."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import delete as delete_from
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.schema import roles


async def exist(connection: AsyncConnection, ids: Sequence[str]) -> set[str]:
    """Which of the ids are roles. These stay so until the transaction ends, as in `users.exist`."""
    if not ids:
        return set()
    known = select(roles.c.id).where(roles.c.id.in_([UUID(id) for id in ids])).order_by(roles.c.id)
    found = await connection.execute(known.with_for_update(read=True, key_share=True))
    return {str(row.id) for row in found}


async def delete(connection: AsyncConnection, id: UUID) -> str | None:
    """Remove a role; the project it was in, None when there is none.

    Then `ownership.record_gone` and `ownership.record_principal_gone` in the same transaction.
    """
    gone = delete_from(roles).where(roles.c.id == id).returning(roles.c.project_id)
    return (await connection.execute(gone)).scalar_one_or_none()
