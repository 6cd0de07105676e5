# SPDX-License-Identifier: Apache-2.0
"""Whether anybody is left who can manage the server: somebody who has an office on it for good.

Offices that end by themselves count for nothing here: when the last one ended nobody could be given another. Nor do
those of users who were deactivated.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.privileges import Privilege
from gateway.db.engine import Deadlocked

_OFFICES = [Privilege.ADMIN.value, Privilege.OPERATOR.value]

# Each role is added once, so it ends whatever circles there are.
_ANYBODY = text(
    """
    with recursive holders(type, id) as (
        select g.principal_type, g.principal_id from grants g join server s on g.object_id = s.id::text
        where g.object_type = 'server' and g.privilege = any(cast(:offices as text[])) and g.expires_at is null
        union
        select g.principal_type, g.principal_id from holders h join grants g on g.object_id = h.id
        where h.type = 'role' and g.object_type = 'role' and g.privilege in ('assignee', 'ownership')
            and g.expires_at is null
    )
    select exists (select 1 from holders where type = 'user'
        and not exists (select 1 from scim_users u where u.user_id = holders.id and not u.active))
    """
)


class NobodyLeft(Exception):
    """Nobody would have an office on the server any more; the transaction must not be committed."""


_TURN = text("select pg_advisory_xact_lock(hashtextextended('server offices', 7))")
_NOBODYS_TURN = text("select pg_advisory_xact_lock_shared(hashtextextended('server offices', 7))")


@asynccontextmanager
async def somebody_stays(
    connection: AsyncConnection, *, concerned: Callable[[], Awaitable[bool]] | None = None
) -> AsyncIterator[None]:
    """Around what takes grants away: raises NobodyLeft when it takes the last office from the last who has one.

    Where nobody had one before, nothing is refused for it. One such change at a time in all processes until the
    transaction ends: two administrators who take away each other's office would both find the other one. Call it before
    rows are locked, so that nobody waits for the lock with something in hand that its holder needs.

    `concerned` tells of a change to a role whether the role leads to an office (None: the change always counts). One
    that does not keeps the turn from being taken until its own end: else the role could be given the office, and the
    last other way be taken by somebody who still finds a member in it. Raises Deadlocked, to be tried again, when the
    role was given an office while this waited.
    """
    if concerned is not None and not await concerned():
        await connection.execute(_NOBODYS_TURN)
        if await concerned():
            raise Deadlocked("the role was given an office on the server meanwhile")
        yield
        return
    await connection.execute(_TURN)
    before = await anybody(connection)
    yield
    if before and not await anybody(connection):
        raise NobodyLeft


async def anybody(connection: AsyncConnection) -> bool:
    """Whether a user has an office on the server, directly or through roles, that does not end."""
    return bool((await connection.execute(_ANYBODY, {"offices": _OFFICES})).scalar_one())
