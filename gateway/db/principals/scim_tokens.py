# SPDX-License-Identifier: Apache-2.0
"""Statements on the tokens with which the directories of identity providers send users and groups by SCIM.

Only digests of the tokens are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.engine.database import Database
from gateway.db.pools.rows import fetch_all, fetch_optional
from gateway.db.schema.principals import scim_tokens


class ScimTokenRow(NamedTuple):
    """A provisioning token of a provider's directory. `good` is true if it is valid."""

    id: UUID
    provider_id: str
    project_id: str
    digest: bytes
    expires_at: datetime
    revoked_at: datetime | None
    good: bool


_COLUMNS: Final = [scim_tokens.c[name] for name in ScimTokenRow._fields[:-1]]
_good = scim_tokens.c.revoked_at.is_(None) & (scim_tokens.c.expires_at > func.clock_timestamp())


class ScimTokens:
    """Implements `gateway.identity.provisioning.TokenStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_valid(self, id: UUID) -> ScimTokenRow | None:
        """Return the row of a token that is neither revoked nor expired, or None. Raises DatabaseUnavailable."""
        async with self._database.read() as connection:
            found = select(*_COLUMNS, _good.label("good")).where(scim_tokens.c.id == id, _good)
            return await fetch_optional(connection, ScimTokenRow, found)


async def store(
    connection: AsyncConnection, *, id: UUID, provider_id: str, project_id: str, digest: bytes, days: int
) -> datetime:
    """Store a token that expires after `days`. Return its expiry."""
    ends = func.clock_timestamp() + func.make_interval(0, 0, 0, days)
    new = insert(scim_tokens).values(
        id=id, provider_id=provider_id, project_id=project_id, digest=digest, expires_at=ends
    )
    ends_at: datetime = (await connection.execute(new.returning(scim_tokens.c.expires_at))).scalar_one()
    return ends_at


async def revoke(connection: AsyncConnection, id: UUID) -> bool:
    """Revoke a token. Return False if no valid token has this id."""
    ended = update(scim_tokens).where(scim_tokens.c.id == id, _good).values(revoked_at=func.clock_timestamp())
    return (await connection.execute(ended)).rowcount == 1


async def list_all(connection: AsyncConnection) -> Sequence[ScimTokenRow]:
    """Return all issued tokens, newest first."""
    rows = select(*_COLUMNS, _good.label("good")).order_by(scim_tokens.c.created_at.desc())
    return await fetch_all(connection, ScimTokenRow, rows)
