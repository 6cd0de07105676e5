# SPDX-License-Identifier: Apache-2.0
"""Statements on retired locations: those of tables and views that were dropped, unregistered or moved.

Credentials for a location remain valid after its table is deleted, and its files may remain. So a location stays
reserved until the last credential has expired, and its files stay with the last owners. A trigger (`locations.sql`)
writes the rows, including the owners. The statement that releases a location adds the principal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, collate, delete, func, or_, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey
from gateway.access.nouns.resolved import ResolvedNamespace
from gateway.db.pools.rows import fetch_optional
from gateway.db.schema.tables import retired_locations as retired


def overlaps(table: str, row: str, condition: str = "true") -> str:
    """Return the SQL condition that the location of a row in `table` is at, above or below the location key `:key`.

    `row` is the name of the row in `condition`, which restricts the rows. `:at` contains `:key` and the keys of all
    locations above it, `:after` is the first text after those below it (`around`).

    Both parts must use an index even in a plan that is made without the values. So the locations below are selected by
    a range in the order of collation C (`first_schema.sql`). `starts_with`, or one `exists` for both parts, would read
    the whole table.
    """
    return f"""(exists (select 1 from {table} {row} where {row}.location_key = any(:at) and {condition})
        or exists (
            select 1 from {table} {row}
            where {row}.location_key collate "C" >= :key and {row}.location_key collate "C" < :after
                and {condition}))"""  # noqa: S608 - composed of constants; every value is a bound parameter


def around(location_key: str, ancestors: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of `overlaps`. `ancestors` are the overlap keys of all locations above."""
    return {"key": location_key, "after": after(location_key), "at": [location_key, *ancestors]}


def after(location_key: str) -> str:
    """Return the first text, in the order of collation C, after all overlap keys that begin with this one.

    Raises ValueError if the key does not end with a slash, because then it is no overlap key.
    """
    if not location_key.endswith("/"):
        raise ValueError(f"an overlap key ends with a slash, not {location_key!r}")
    return location_key[:-1] + chr(ord("/") + 1)


#: SQL condition: credentials for the location `r` of `retired_locations` may still be valid.
REACHABLE: Final = "r.keys_until > clock_timestamp()"


async def retired_by(connection: AsyncConnection, table_id: UUID, principal: str) -> None:
    """Record the principal that dropped or moved this table or view, with its retired location.

    Call it in the transaction that deleted or moved its row.
    """
    await connection.execute(
        update(retired)
        .where(retired.c.table_id == table_id, retired.c.retired_by.is_(None))
        .values(retired_by=principal)
    )


class LastLocation(NamedTuple):
    """The last location of a table or view, with its owners.

    `known` is True if the user row of the caller is older than the location.
    """

    location: str
    location_key: str
    warehouse_id: UUID
    files_remain: bool
    owners: list[str]
    known: bool


async def last_location(
    connection: AsyncConnection, above: Sequence[tuple[str, str]], *, user: str, replaced: UUID | None
) -> LastLocation | None:
    """Return the latest recorded location among `above`, or None. `above` are pairs of a location and its overlap key.

    It is the last location of a table or view, or the current one of the table `replaced`. `user` is the caller.
    """
    texts, keys = [text for text, _ in above], [key for _, key in above]
    values = {"texts": texts, "above": keys, "user": user, "replaced": replaced}
    return await fetch_optional(connection, LastLocation, _LAST_PLACE, values)


# A deleted user who returns has a newer row and owns nothing from before. The keys serve only to find rows by the
# index: a location that differs in letter case is another folder of the store, and its row does not apply here.
_LAST_PLACE = text(
    """
    select p.location, p.location_key, p.warehouse_id, p.files_remain, p.owners,
        exists (select 1 from users u where u.id = :user and u.created_at <= p.since) as known
    from (
        select r.location, r.location_key, r.warehouse_id, r.files_remain, r.owners, r.retired_at as since
        from retired_locations r where r.location_key = any(:above) and r.location = any(:texts)
        union all
        select t.location, t.location_key, t.warehouse_id, true, permanent_owners(t.kind, t.id), clock_timestamp()
        from tables t where t.id = cast(:replaced as uuid) and t.location = any(:texts)
    ) p
    order by p.since desc limit 1
    """
)


async def nested(connection: AsyncConnection, location_key: str, ancestors: Sequence[str]) -> bool:
    """Return True if a retired location above or below this one has files or credentials that may be valid."""
    return bool((await connection.execute(_NESTED, around(location_key, ancestors))).scalar_one())


_NESTED = text(
    f"select {overlaps('retired_locations', 'r', f'r.location_key <> :key and (r.files_remain or {REACHABLE})')}"
)


async def remove_reused(connection: AsyncConnection, location: str, location_key: str) -> None:
    """Delete the retired locations at or below the location of a new table, because the files there now belong to that
    table.

    Rows that differ in letter case stay: their files are in other folders, which were not checked.
    """
    await connection.execute(delete(retired).where(*_at_or_below(location, location_key)))


async def files_deleted(connection: AsyncConnection, table_id: UUID, location: str, location_key: str) -> None:
    """Record that the files at and below the former location of a table or view were deleted.

    Also delete rows without files and without valid credentials. An earlier location of a view that was moved is
    another one, whose files remain.
    """
    there = (retired.c.table_id == table_id, *_at_or_below(location, location_key))
    await connection.execute(update(retired).where(*there).values(files_remain=False))
    await connection.execute(_FORGET)


async def carry_policies(
    connection: AsyncConnection,
    *,
    to: ObjectKey,
    namespace: ResolvedNamespace,
    file: str | None,
    above: Sequence[tuple[str, str]],
) -> bool:
    """Give an object that is registered the policy inputs of the objects whose files were at its location.

    Return True if it got any. `above` are pairs of a location and its overlap key, beginning with the new object's own
    location. Objects at, below or above it count if their files remain. Released columns are carried only with the last
    metadata file `file` of the former table, in which a field id means the same column. `file` is None for a generic
    table. Call it before `remove_reused`.
    """
    (location, key), *_ = above
    values = {
        "location": location,
        "key": key,
        "after": after(key),
        "texts": [text for text, _ in above],
        "keys": [key for _, key in above],
        "type": to.type.value,
        "to": UUID(to.id),
        "namespace": namespace.id,
        "warehouse": namespace.warehouse.id,
        "file": file,
    }
    carried = bool((await connection.execute(_CARRY, values)).scalar_one())
    if carried:
        await connection.execute(_RENEW, {"warehouse": namespace.warehouse.id})
    return carried


# At its deletion, an object gets a copy of the policy inputs of its namespaces. A dropped object that can be restored
# is still in its namespaces.
_CARRY = text(
    """
    with former as (
        select r.table_id as id, min(cast(r.warehouse_id as text)) as warehouse_id,
            bool_or(r.location_key = :key and r.location = :location
                and r.metadata_location is not null and r.metadata_location = cast(:file as text)) as is_last
        from retired_locations r
        where r.files_remain and (
            r.location_key = any(:keys) and r.location = any(:texts)
            or r.location_key collate "C" >= :key and r.location_key collate "C" < :after
                and starts_with(r.location, cast(:location as text) || '/'))
        group by r.table_id)
    select carry_policy_inputs(
        cast(:type as text), cast(:to as uuid), cast(:warehouse as uuid),
        array(
            select i from former f left join tables t on t.id = f.id cross join lateral policy_inputs(f.id, coalesce(
                containers_of_table(t.namespace_id, t.name_key), array[cast(f.warehouse_id as uuid)])) as i
            where i.kind <> 'release' or f.is_last),
        array(select i from policy_inputs(
            cast(:to as uuid), containers_of_namespace(cast(:namespace as uuid))) as i))
    """
)

_RENEW = text("select renew_data_policy_revision(cast(:warehouse as uuid))")


def _at_or_below(location: str, location_key: str) -> tuple[ColumnElement[bool], ...]:
    """Return conditions for the rows at or below the exact text `location`. The overlap key makes the index usable."""
    exact = or_(retired.c.location == location, func.starts_with(retired.c.location, f"{location}/"))
    key = collate(retired.c.location_key, "C")
    return key >= location_key, key < after(location_key), exact


_FORGET = text(
    f"delete from retired_locations r where not r.files_remain and not ({REACHABLE})"  # noqa: S608 - composed of constants; every value is a bound parameter
)
