# SPDX-License-Identifier: Apache-2.0
"""Statements on grants and on their history. Each grant requires a tuple in OpenFGA.

A row belongs to one grantor, so several rows may require the same tuple. The statement that deletes a row also inserts
it into the history, so no grant is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from functools import cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, and_, bindparam, func, or_, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType, table_of
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.object_locations import joined_locations, project_of
from gateway.db.grants.grant_ends import Ended, GrantRow, LiveOrExpired, end
from gateway.db.pools.rows import columns_for, columns_of, fetch_all, fetch_optional
from gateway.db.schema.grants import grant_history, grants
from gateway.db.schema.objects import TABLES
from gateway.db.schema.tables import tables
from gateway.db.schema.warehouses import projects

#: Maximum number of rows of one statement: PostgreSQL accepts at most 32,767 parameters.
_AT_ONCE = 1_000


class HistoryRow(NamedTuple):
    """An ended grant."""

    id: int
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
    ended_at: datetime
    ended_by: str | None
    ended_because: str


_COLUMNS: Final = columns_for(GrantRow, grants)


class Change(IntEnum):
    """The effect of `grant`: False if it changed nothing.

    SHORTENED revokes a right, so enqueue its keys with `takes_away`.
    """

    NOTHING = 0
    GIVEN = 1
    SHORTENED = 2


async def grant(
    connection: AsyncConnection,
    *,
    privilege: Privilege,
    principal: Principal,
    on: ObjectKey,
    by: str,
    reason: str | None = None,
    expires_at: datetime | None = None,
    acts_for: str | None = None,
) -> Change:
    """Record that `by` grants the privilege.

    The grant ends at `expires_at` (with a time zone; None for no expiry). `reason` is a text for reviewers. `acts_for`
    are the limits of `delegate` (`limits_text`).

    A grantor has one row for each privilege, principal and object. A grant with another expiry, reason or limits
    replaces the row and moves the old one into the history. Raises ValueError for an expiry of a role's membership in a
    role, which the relationship model does not support (`fga_model/VERSIONS.md`), and for a time without a zone.
    """
    if expires_at is not None and on.type is ObjectType.ROLE and principal.type is PrincipalType.ROLE:
        raise ValueError("the membership of a role in a role cannot expire")
    if expires_at is not None and expires_at.tzinfo is None:
        raise ValueError(f"a time without a zone: {expires_at.isoformat()}")
    key = _key(privilege, principal, on)
    values = {**key, "granted_by": by, "reason": reason, "expires_at": expires_at, "acts_for": acts_for}
    before: LiveOrExpired | None = None
    # Most grants are new. The insertion fails if the same grantor has given the same grant, earlier or concurrently.
    while (await connection.execute(_GIVE, {**values, "id": uuid7()})).rowcount == 0:
        own = select(*_COLUMNS, _live().label("live")).where(_same(key), grants.c.granted_by == by).with_for_update()
        before = await fetch_optional(connection, LiveOrExpired, own)
        if before is None:
            continue
        if before.live and (before.expires_at, before.reason, before.acts_for) == (
            expires_at,
            reason,
            acts_for,
        ):
            return Change.NOTHING
        await end(connection, "g.id = :id", {"id": before.id}, end_reason=Ended.REPLACED, by=by)
    return _difference(before, expires_at, acts_for)


_GIVE = insert(grants).on_conflict_do_nothing()


async def lock_object_shared(connection: AsyncConnection, on: ObjectKey, *, kept: bool = False) -> bool:
    """Lock an object against deletion until this transaction ends. Return False if it does not exist.

    With `kept`, a dropped table or view that can be restored counts as existing. A column is locked with its table.
    Without the lock, a grant could be recorded on an object just after a concurrent drop has ended all grants on it.
    """
    statement = _hold(on.type, kept)
    on = table_of(on) if on.type is ObjectType.COLUMN else on
    id = on.id if on.type is ObjectType.PROJECT else UUID(on.id)
    return (await connection.execute(statement, {"object": id})).one_or_none() is not None


@cache
def _hold(type: ObjectType, kept: bool) -> Select[Any]:
    table = TABLES[type]
    held = select(table.c.id).where(table.c.id == bindparam("object")).with_for_update(read=True, key_share=True)
    return held.where(tables.c.deleted_at.is_(None)) if table is tables and not kept else held


async def lock_object(connection: AsyncConnection, on: ObjectKey) -> None:
    """Until this transaction ends, wait with other transactions that lock the grants on the same object."""
    await connection.execute(_LOCK, {"name": lock_name(on)})


def lock_name(on: ObjectKey) -> str:
    """Return the name of the advisory lock on the grants on an object."""
    return f"grants\x1f{on.type}\x1f{on.id}"


_LOCK = text("select pg_advisory_xact_lock(hashtextextended(:name, 7))")


async def revoke(
    connection: AsyncConnection,
    *,
    privilege: Privilege,
    principal: Principal,
    on: ObjectKey,
    by: str,
    granted_for: str | None = None,
) -> bool:
    """Revoke a grant, whichever principals made it. Return False if none was live.

    With `granted_for`, revoke only grants with this reason.
    """
    where = (
        "g.privilege = :privilege and g.principal_type = :principal_type and g.principal_id = :principal_id "
        "and g.object_type = :object_type and g.object_id = :object_id"
    )
    values: dict[str, str] = _key(privilege, principal, on)
    if granted_for is not None:
        where += " and g.reason = :granted_for"
        values["granted_for"] = granted_for
    gone = await end(connection, where, values, end_reason=Ended.REVOKED, by=by)
    return any(row.live for row in gone)


async def grant_to_users(
    connection: AsyncConnection, *, privilege: Privilege, users: Sequence[str], on: ObjectKey, by: str
) -> None:
    """Grant a privilege to many users, as `grant` does, without an expiry and without a reason.

    Rows of the same grantor with an expiry or a reason are replaced.
    """
    if not users:
        return
    same = {"privilege": privilege.value, "users": list(users), "object_type": on.type.value, "object_id": on.id}
    where = (
        "g.privilege = :privilege and g.principal_type = 'user' and g.principal_id = any(:users) "
        "and g.object_type = :object_type and g.object_id = :object_id and g.granted_by = :giver "
        "and (g.expires_at is not null or g.reason is not null)"
    )
    await end(connection, where, {**same, "giver": by}, end_reason=Ended.REPLACED, by=by)
    values = [
        {**_key(privilege, Principal(PrincipalType.USER, user), on), "id": uuid7(), "granted_by": by} for user in users
    ]
    for start in range(0, len(values), _AT_ONCE):
        await connection.execute(insert(grants).values(values[start : start + _AT_ONCE]).on_conflict_do_nothing())


async def revoke_from_users(
    connection: AsyncConnection, *, privilege: Privilege, users: Sequence[str], on: ObjectKey, by: str
) -> None:
    """Revoke a privilege from many users, as `revoke` does."""
    where = (
        "g.privilege = :privilege and g.principal_type = 'user' and g.principal_id = any(:users) "
        "and g.object_type = :object_type and g.object_id = :object_id"
    )
    values = {"privilege": privilege.value, "users": list(users), "object_type": on.type.value, "object_id": on.id}
    await end(connection, where, values, end_reason=Ended.REVOKED, by=by)


async def of_user(connection: AsyncConnection, user_id: str, *, own: bool = False) -> Sequence[GrantRow]:
    """Return all live grants to one user. With `own`, return only those that the user granted itself."""
    held = (grants.c.principal_type == PrincipalType.USER.value, grants.c.principal_id == user_id)
    statement = select(*_COLUMNS).where(*held, _live()).order_by(grants.c.id)
    if own:
        statement = statement.where(grants.c.granted_by == user_id)
    return await fetch_all(connection, GrantRow, statement)


async def set_expiry(
    connection: AsyncConnection, *, privilege: Privilege, principal: Principal, on: ObjectKey, until: datetime, by: str
) -> bool:
    """Set the expiry of a grant, of all grantors, to `until`, a time in the future.

    Return False if every live row already expires at `until` or earlier, or none exists.
    """
    where = (
        "g.privilege = :privilege and g.principal_type = :principal_type and g.principal_id = :principal_id "
        "and g.object_type = :object_type and g.object_id = :object_id "
        "and (g.expires_at is null or g.expires_at > :until)"
    )
    key = _key(privilege, principal, on)
    gone = await end(connection, where, {**key, "until": until}, end_reason=Ended.REPLACED, by=by)
    values = [
        {
            **key,
            "id": uuid7(),
            "granted_by": row.granted_by,
            "reason": row.reason,
            "expires_at": until,
            "acts_for": row.acts_for,
        }
        for row in gone
        if row.live
    ]
    if values:
        await connection.execute(insert(grants), values)
    return bool(values)


async def on_object(
    connection: AsyncConnection,
    on: ObjectKey,
    *,
    of: Principal | None = None,
    after: UUID | None = None,
    limit: int | None = None,
) -> Sequence[GrantRow]:
    """Return the live grants on one object, oldest first. The page starts after the id `after`; without `limit`, it has
    all.

    With `of`, return only grants to this principal. If several grantors gave a privilege to a principal, each has a
    row.
    """
    here = and_(grants.c.object_type == on.type.value, grants.c.object_id == on.id)
    statement = select(*_COLUMNS).where(here, _live(), *held_by(of)).order_by(grants.c.id).limit(limit)
    if after is not None:
        statement = statement.where(grants.c.id > after)
    return await fetch_all(connection, GrantRow, statement)


def held_by(principal: Principal | None) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions that select the grants to one principal. Return no condition for all principals (None)."""
    if principal is None:
        return ()
    return grants.c.principal_type == principal.type.value, grants.c.principal_id == principal.id


async def held_of(
    connection: AsyncConnection, on: ObjectKey, entries: Sequence[tuple[Privilege, Principal]]
) -> set[tuple[Privilege, Principal]]:
    """Return those of the `entries` that are granted on the object, by any grantor."""
    if not entries:
        return set()
    parameters = {
        "privileges": [privilege.value for privilege, _ in entries],
        "principal_types": [principal.type.value for _, principal in entries],
        "principal_ids": [principal.id for _, principal in entries],
        "object_type": on.type.value,
        "object_id": on.id,
    }
    return {entries[row.ord - 1] for row in await connection.execute(_HELD, parameters)}


_HELD = text(
    """
    select distinct a.ord
    from unnest(cast(:privileges as text[]), cast(:principal_types as text[]), cast(:principal_ids as text[]))
        with ordinality as a(privilege, principal_type, principal_id, ord)
    join grants g on g.privilege = a.privilege and g.principal_type = a.principal_type
        and g.principal_id = a.principal_id and g.object_type = :object_type and g.object_id = :object_id
    where g.expires_at is null or g.expires_at > clock_timestamp()
    """
)


_OF_PRINCIPAL = text(
    f"""
    select {columns_of(GrantRow, "g")} from grants g
    {joined_locations("g.object_type", "g.object_id")}
    where g.principal_type = :principal_type and g.principal_id = :principal_id
        and (cast(:after as uuid) is null or g.id > cast(:after as uuid))
        and (g.expires_at is null or g.expires_at > clock_timestamp())
        and case g.object_type when 'server' then true
            else {project_of("g.object_type", "g.object_id")} = :project_id end
    order by g.id limit :limit
    """  # noqa: S608 - composed of names of the schema; every value is a bound parameter
)


async def of_principal(
    connection: AsyncConnection, principal: Principal, *, project_id: str, after: UUID | None, limit: int
) -> Sequence[GrantRow]:
    """Return the direct grants of a principal in a project and on the server, oldest first."""
    values = {"principal_type": principal.type.value, "principal_id": principal.id, "project_id": project_id}
    return await fetch_all(connection, GrantRow, _OF_PRINCIPAL, {**values, "after": after, "limit": limit})


async def history(
    connection: AsyncConnection,
    *,
    on: ObjectKey | None = None,
    principal: Principal | None = None,
    after: int | None = None,
    limit: int,
) -> Sequence[HistoryRow]:
    """Return ended grants on an object, to a principal, or both, latest first. The page starts after the id `after`.

    For a project, only grants since its creation are returned: an earlier project may have had its id. Raises
    ValueError without an object and a principal: the whole history is too large.
    """
    if on is None and principal is None:
        raise ValueError("the history of grants needs an object or a principal")
    statement = select(*columns_for(HistoryRow, grant_history)).order_by(grant_history.c.id.desc()).limit(limit)
    if on is not None:
        statement = statement.where(grant_history.c.object_type == on.type.value, grant_history.c.object_id == on.id)
        if on.type is ObjectType.PROJECT:
            made = select(projects.c.created_at).where(projects.c.id == on.id).scalar_subquery()
            statement = statement.where(grant_history.c.granted_at >= made)
    if principal is not None:
        of = (
            grant_history.c.principal_type == principal.type.value,
            grant_history.c.principal_id == principal.id,
        )
        statement = statement.where(*of)
    if after is not None:
        statement = statement.where(grant_history.c.id < after)
    return await fetch_all(connection, HistoryRow, statement)


def tuple_of(row: GrantRow | LiveOrExpired) -> TupleKey:
    """Return the tuple that a row of `grants` requires."""
    principal = Principal(PrincipalType(row.principal_type), row.principal_id)
    return TupleKey(principal, row.privilege, ObjectKey(ObjectType(row.object_type), row.object_id))


def _difference(before: LiveOrExpired | None, expires_at: datetime | None, acts_for: str | None) -> Change:
    if before is None or not before.live:
        return Change.GIVEN
    if before.acts_for != acts_for:
        return Change.SHORTENED  # other limits may exclude a user who was included before
    if expires_at is None:
        return Change.GIVEN
    shorter = before.expires_at is None or expires_at < before.expires_at
    return Change.SHORTENED if shorter else Change.GIVEN


def _key(privilege: Privilege, principal: Principal, on: ObjectKey) -> dict[str, str]:
    return {
        "privilege": privilege.value,
        "principal_type": principal.type.value,
        "principal_id": principal.id,
        "object_type": on.type.value,
        "object_id": on.id,
    }


def _same(key: Mapping[str, str]) -> ColumnElement[bool]:
    return and_(*(grants.c[name] == value for name, value in key.items()))


def _live() -> ColumnElement[bool]:
    return or_(grants.c.expires_at.is_(None), grants.c.expires_at > func.clock_timestamp())
