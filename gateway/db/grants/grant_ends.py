# SPDX-License-Identifier: Apache-2.0
"""Statements that end grants: by revocation, by expiry, or with their object or principal.

The statement that deletes a row also inserts it into the history, so no grant is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import TextClause, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.pools.rows import columns_of, fetch_all
from gateway.db.schema.grants import grants


class GrantRow(NamedTuple):
    """A grant."""

    id: UUID
    privilege: str
    principal_type: str
    principal_id: str
    object_type: str
    object_id: str
    granted_by: str
    granted_at: datetime
    reason: str | None
    expires_at: datetime | None
    acts_for: str | None

    @property
    def object(self) -> ObjectKey:
        """The object of the grant."""
        return ObjectKey(ObjectType(self.object_type), self.object_id)

    @property
    def principal(self) -> Principal:
        """The holder of the grant."""
        return Principal(PrincipalType(self.principal_type), self.principal_id)


class LiveOrExpired(NamedTuple):
    """A grant that may have expired. `live` is false if it has."""

    id: UUID
    privilege: str
    principal_type: str
    principal_id: str
    object_type: str
    object_id: str
    granted_by: str
    granted_at: datetime
    reason: str | None
    expires_at: datetime | None
    acts_for: str | None
    live: bool


class Ended(StrEnum):
    """The reason why a grant ended, in the history.

    A grant that had already expired has the reason EXPIRED, whatever deleted it.
    """

    REVOKED = "revoked"
    EXPIRED = "expired"
    OBJECT_DELETED = "object deleted"
    PRINCIPAL_DELETED = "principal deleted"
    REPLACED = "replaced"


async def end(
    connection: AsyncConnection, where: str, values: Mapping[str, object], *, end_reason: Ended, by: str | None
) -> Sequence[LiveOrExpired]:
    """Move rows into the history. Return them as they were before.

    `where` is an SQL condition on `g` without literal values. The rows are locked in one order first, so that two such
    statements cannot deadlock.
    """
    values = {**values, "because": end_reason.value, "ended_by": by}
    return await fetch_all(connection, LiveOrExpired, _end_grants(where), values)


@cache
def _end_grants(where: str) -> TextClause:
    return text(
        f"""
        with held as materialized (select g.id from grants g where {where} order by g.id for update),
        gone as (delete from grants g using held where g.id = held.id returning {columns_of(GrantRow, "g")}),
        told as (select *, coalesce(expires_at > clock_timestamp(), true) as live from gone),
        kept as (
            insert into grant_history (grant_id, privilege, principal_type, principal_id, object_type, object_id,
                granted_by, granted_at, reason, expires_at, acts_for, ended_at, ended_by, ended_because)
            select id, privilege, principal_type, principal_id, object_type, object_id, granted_by, granted_at, reason,
                expires_at, acts_for, case when live then clock_timestamp() else expires_at end,
                case when live then :ended_by end, case when live then :because else 'expired' end
            from told order by id)
        select * from told order by id
        """  # noqa: S608 - `where` is a literal of this module or of `grants`; every value is a bound parameter
    )


async def sweep(
    connection: AsyncConnection, objects: Sequence[ObjectKey], *, by: str | None = None
) -> Sequence[LiveOrExpired]:
    """End all grants on deleted objects, including grants on the columns of tables. Return the rows."""
    where = (
        "g.id in (select o.id from grants o where (o.object_type, o.object_id) in "
        "(select * from unnest(cast(:types as text[]), cast(:ids as text[]))) "
        "union all select c.id from grants c where c.object_type = 'column' "
        "and split_part(c.object_id, '.', 1) = any(cast(:tables as text[])))"
    )
    values = {
        "types": [key.type.value for key in objects],
        "ids": [key.id for key in objects],
        "tables": [key.id for key in objects if key.type is ObjectType.TABLE],
    }
    return await end(connection, where, values, end_reason=Ended.OBJECT_DELETED, by=by)


async def sweep_principal(connection: AsyncConnection, principal: Principal, *, by: str) -> Sequence[LiveOrExpired]:
    """End all grants of a deleted user or role. Return the rows."""
    where = "g.principal_type = :principal_type and g.principal_id = :principal_id"
    values = {"principal_type": principal.type.value, "principal_id": principal.id}
    return await end(connection, where, values, end_reason=Ended.PRINCIPAL_DELETED, by=by)


async def sweep_own(
    connection: AsyncConnection, principal: Principal, *, until: datetime, by: str
) -> Sequence[LiveOrExpired]:
    """End the grants that a user got by creating objects, up to the time `until`. Return the rows."""
    where = (
        "g.principal_type = :principal_type and g.principal_id = :principal_id and g.granted_by = :principal_id "
        "and g.granted_at <= :until"
    )
    values = {"principal_type": principal.type.value, "principal_id": principal.id, "until": until}
    return await end(connection, where, values, end_reason=Ended.PRINCIPAL_DELETED, by=by)


async def still_granted(connection: AsyncConnection, rows: Sequence[LiveOrExpired]) -> set[UUID]:
    """Return the ids of those ended `rows` for which another live grant gives the same privilege to the same
    principal.
    """
    found = await connection.execute(
        _STILL_GRANTED,
        {
            "ids": [row.id for row in rows],
            "privileges": [row.privilege for row in rows],
            "principal_types": [row.principal_type for row in rows],
            "principal_ids": [row.principal_id for row in rows],
            "object_types": [row.object_type for row in rows],
            "object_ids": [row.object_id for row in rows],
        },
    )
    return set(found.scalars())


_STILL_GRANTED = text(
    """
    select e.id
    from unnest(cast(:ids as uuid[]), cast(:privileges as text[]), cast(:principal_types as text[]),
            cast(:principal_ids as text[]), cast(:object_types as text[]), cast(:object_ids as text[]))
        as e(id, privilege, principal_type, principal_id, object_type, object_id)
    where exists (
        select from grants g
        where (g.privilege, g.principal_type, g.principal_id) = (e.privilege, e.principal_type, e.principal_id)
            and (g.object_type, g.object_id) = (e.object_type, e.object_id)
            and (g.expires_at is null or g.expires_at > clock_timestamp()))
    """
)


async def sweep_expired(connection: AsyncConnection, *, limit: int) -> Sequence[LiveOrExpired]:
    """End up to `limit` expired grants, and return their rows. Rows that are locked are skipped."""
    over = select(grants.c.id).where(grants.c.expires_at <= func.clock_timestamp()).order_by(grants.c.expires_at)
    ids = (await connection.execute(over.limit(limit).with_for_update(skip_locked=True))).scalars().all()
    if not ids:
        return ()
    return await end(connection, "g.id = any(:ids)", {"ids": list(ids)}, end_reason=Ended.EXPIRED, by=None)
