# SPDX-License-Identifier: Apache-2.0
"""Prevent changes that remove the last server administrator.

An administrator is an active user with `admin` or `operator` on the server, directly or through roles, without an
expiry. A grant with an expiry does not count: after its end no administrator could grant another one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.management_errors import LastAdminRemoved
from gateway.access.nouns.privileges import Privilege
from gateway.db.engine.database import Deadlocked

_ADMIN_PRIVILEGES = [Privilege.ADMIN.value, Privilege.OPERATOR.value]

# Each role is added once, so the recursion ends also with cycles.
_HAS_ADMIN = text(
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


_LOCK = text("select pg_advisory_xact_lock(hashtextextended('server offices', 7))")
_LOCK_SHARED = text("select pg_advisory_xact_lock_shared(hashtextextended('server offices', 7))")


@asynccontextmanager
async def guard_last_admin(
    connection: AsyncConnection, *, concerned: Callable[[], Awaitable[bool]] | None = None
) -> AsyncIterator[None]:
    """Context manager around a revocation. Raises LastAdminRemoved if the block removes the last server administrator.

    If there was none before, nothing is raised. Such changes run one at a time in all processes until their
    transactions end: otherwise two administrators could remove each other. Enter it before rows are locked, so that no
    transaction waits for this lock with rows that its holder needs.

    `concerned` returns True if the changed role gives `admin` or `operator` (None: the change always counts). A change
    that does not count still holds the lock, in shared mode, until its end. Otherwise the role could get the privilege
    and the last other administrator be removed meanwhile. Raises Deadlocked, for a retry, if the role got the privilege
    while this waited.
    """
    if concerned is not None and not await concerned():
        await connection.execute(_LOCK_SHARED)
        if await concerned():
            raise Deadlocked("the role was given an office on the server meanwhile")
        yield
        return
    await connection.execute(_LOCK)
    before = await has_administrator(connection)
    yield
    if before and not await has_administrator(connection):
        raise LastAdminRemoved


async def has_administrator(connection: AsyncConnection) -> bool:
    """Return True if the server has an administrator."""
    return bool((await connection.execute(_HAS_ADMIN, {"offices": _ADMIN_PRIVILEGES})).scalar_one())
