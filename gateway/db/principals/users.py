# SPDX-License-Identifier: Apache-2.0
"""Statements on users, and the guard that keeps the last server administrator.

An administrator is an active user with `admin` or `operator` on the server, directly or through roles, without an
expiry. A grant with an expiry does not count: after its end no administrator could grant another one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import case, func, literal_column, select, text
from sqlalchemy import delete as delete_from
from sqlalchemy import update as update_of
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.bodies import UserType
from gateway.access.management_errors import LastAdminRemoved
from gateway.access.nouns.privileges import Privilege
from gateway.db.engine.database import Deadlocked
from gateway.db.pools.rows import columns_for, fetch_all, fetch_optional
from gateway.db.schema.principals import scim_users, users


class UserRow(NamedTuple):
    """A user. `email` is only displayed. `verified_email` proves who the user is."""

    id: str
    name: str
    email: str | None
    user_type: UserType
    created_at: datetime
    updated_at: datetime | None
    last_updated_with: str
    verified_email: str | None


_COLUMNS: Final = columns_for(UserRow, users)


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """An email address of a user. `email` is None if it has none.

    It is `verified` if the provider's claim verified it or a directory gave it. Otherwise a caller with the right to
    change users set it.
    """

    email: str | None
    verified: bool


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The name and the type of a user. A field is None if it is not known; a new record then gets the fallback."""

    name: str | None
    user_type: str | None
    fallback_name: str = ""
    fallback_type: str = "application"


async def upsert(
    connection: AsyncConnection,
    *,
    id: str,
    profile: Profile,
    address: Address | None,
    by: str,
    update_if_exists: bool,
) -> tuple[UserRow, bool]:
    """Insert or update a user. Return (its row, True if it was inserted).

    An existing user is changed only with `update_if_exists`. Its address is kept if `address` is None, and its name and
    type are kept if the profile does not have them. A record with the fallback name also has a guessed type. When such
    a record gets a name, it also gets the fallback type of the profile.
    """
    first: dict[str, Any] = {} if address is None else {"email": address.email}
    if address is not None and address.verified:
        first["verified_email"] = address.email
    new = insert(users).values(
        id=id,
        name=profile.name or profile.fallback_name,
        user_type=profile.user_type or profile.fallback_type,
        last_updated_with=by,
        **first,
    )
    change: dict[str, Any] = {"last_updated_with": by}
    if profile.name is not None:
        guessed = case((users.c.name == profile.fallback_name, profile.fallback_type), else_=users.c.user_type)
        change |= {"name": profile.name, "user_type": guessed}
    if profile.user_type is not None:
        change["user_type"] = profile.user_type
    change |= {} if address is None else _columns_for_address(address)
    values: dict[str, Any] = (
        {**change, "updated_at": func.clock_timestamp()} if update_if_exists else {"id": users.c.id}
    )
    statement = new.on_conflict_do_update(index_elements=["id"], set_=values).returning(
        *_COLUMNS, literal_column("xmax = 0").label("created")
    )
    *fields, created = (await connection.execute(statement)).one()
    return UserRow(*fields), created


async def verify_address(connection: AsyncConnection, id: str, email: str) -> None:
    """Record the address that the user's provider verified. Do nothing if a directory (SCIM) maintains the user."""
    kept = select(scim_users.c.id).where(scim_users.c.user_id == id).exists()
    change = update_of(users).where(users.c.id == id, users.c.verified_email.is_distinct_from(email), ~kept)
    await connection.execute(change.values(email=email, verified_email=email))


def _columns_for_address(address: Address) -> dict[str, Any]:
    """Return the values of the columns for the address and the verified address.

    With an unverified address, the verified one is kept only if both are equal.
    """
    if address.verified:
        return {"email": address.email, "verified_email": address.email}
    same = case((users.c.verified_email == address.email, users.c.verified_email), else_=None)
    return {"email": address.email, "verified_email": same}


async def get(connection: AsyncConnection, id: str) -> UserRow | None:
    """Return the user's row, or None."""
    return await fetch_optional(connection, UserRow, select(*_COLUMNS).where(users.c.id == id))


async def named(connection: AsyncConnection, ids: Sequence[str]) -> Sequence[UserRow]:
    """Return the users among these ids that have a record."""
    if not ids:
        return ()
    return await fetch_all(connection, UserRow, select(*_COLUMNS).where(users.c.id.in_(ids)))


async def update(
    connection: AsyncConnection, id: str, *, name: str, address: Address | None, user_type: str, by: str
) -> UserRow | None:
    """Set the name and type of a user, and the address if one is given.

    Return the row, None if the user does not exist.
    """
    values = {"name": name, "user_type": user_type, "last_updated_with": by}
    values |= {} if address is None else _columns_for_address(address)
    change = update_of(users).where(users.c.id == id).values(**values, updated_at=func.clock_timestamp())
    return await fetch_optional(connection, UserRow, change.returning(*_COLUMNS))


async def exist(connection: AsyncConnection, ids: Sequence[str]) -> set[str]:
    """Return those of the ids that belong to users, and lock the users against deletion until the transaction ends.

    Otherwise a grant could be made to a user whose grants a concurrent deletion has just ended.
    """
    if not ids:
        return set()
    held = select(users.c.id).where(users.c.id.in_(ids)).order_by(users.c.id)
    return set((await connection.execute(held.with_for_update(read=True, key_share=True))).scalars())


async def delete(connection: AsyncConnection, id: str) -> bool:
    """Delete the user's row. Return False if there is none.

    Call `ownership.record_principal_deleted` in the same transaction afterwards.
    """
    return (await connection.execute(delete_from(users).where(users.c.id == id))).rowcount == 1


async def page(
    connection: AsyncConnection, *, name_contains: str | None, after: str | None, limit: int
) -> Sequence[UserRow]:
    """Return users ordered by id. The page starts after the id `after`."""
    statement = select(*_COLUMNS).order_by(users.c.id).limit(limit)
    if after is not None:
        statement = statement.where(users.c.id > after)
    if name_contains:
        statement = statement.where(users.c.name.icontains(name_contains, autoescape=True))
    return await fetch_all(connection, UserRow, statement)


_ADMIN_PRIVILEGES = [Privilege.ADMIN.value, Privilege.OPERATOR.value]

# Each role is added once, so the recursion ends even if roles contain each other.
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


_OFFICES = func.hashtextextended("server offices", 7)
_LOCK, _LOCK_SHARED = select(func.pg_advisory_xact_lock(_OFFICES)), select(func.pg_advisory_xact_lock_shared(_OFFICES))


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
            raise Deadlocked("the role received `admin` or `operator` on the server while this transaction waited")
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
