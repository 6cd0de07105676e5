# SPDX-License-Identifier: Apache-2.0
"""Read the grants on an object and its containers, by principal, with the roles that contain the principals.

The reads of one answer share a snapshot, so that the answer describes one moment.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.engine.database import Database
from gateway.db.grants.grant_ends import GrantRow
from gateway.db.pools.rows import columns_of, fetch_all, fetch_one
from gateway.db.tuples.desired_tuples import GRANTS_BELOW

_SNAPSHOT: Final = text("set transaction isolation level repeatable read, read only")
_NOW: Final = text("select clock_timestamp() as now, s.revision from server s")

LIVE: Final = "(g.expires_at is null or g.expires_at > cast(:now as timestamptz))"
_ACTIVE: Final = """
    not (g.principal_type = 'user'
        and exists (select 1 from scim_users u where u.user_id = g.principal_id and not u.active))
"""
_SOUGHT: Final = """
    select * from unnest(cast(:object_types as text[]), cast(:object_ids as text[]), cast(:privileges as text[]))
        as s(object_type, object_id, privilege)
"""


class Moment(NamedTuple):
    """The time of a snapshot by the database's clock, and the revision of the server."""

    now: datetime
    revision: UUID


@dataclass(frozen=True, slots=True)
class Sought:
    """The grants that matter: privileges on objects."""

    pairs: tuple[tuple[ObjectKey, str], ...]

    def values(self) -> dict[str, Any]:
        """Return the parameters of the statements of this module."""
        return {
            "object_types": [key.type.value for key, _ in self.pairs],
            "object_ids": [key.id for key, _ in self.pairs],
            "privileges": [privilege for _, privilege in self.pairs],
        }


@asynccontextmanager
async def snapshot(database: Database) -> AsyncIterator[tuple[AsyncConnection, Moment]]:
    """Yield (a connection whose reads see one snapshot, the time and revision of it). Raises DatabaseUnavailable."""
    async with database.transaction() as connection:
        await connection.execute(_SNAPSHOT)
        yield connection, await _moment(connection)


async def _moment(connection: AsyncConnection) -> Moment:
    """Return the time and revision of the snapshot that a transaction reads."""
    return await fetch_one(connection, Moment, _NOW)


class _Holder(NamedTuple):
    principal_type: str
    principal_id: str


# Every part of a page ends after `limit` principals, so its cost does not depend on the number of grants on an object.
# Each type of principals has a place of its own. For a comparison of rows, the planner estimates that no grant is left,
# and reads the grants on all objects.
_PLACES: Final = "unnest(cast(:place_types as text[]), cast(:place_ids as text[])) as a(type, id)"
_IN_PAGE: Final = f"{LIVE} and {_ACTIVE} and g.principal_type = a.type and g.principal_id > a.id"
_ORDERED: Final = "order by g.principal_type, g.principal_id limit :limit"

# Principals with a grant that matters, and the members of roles whose members are listed one by one, because the caller
# may not read who is in the role.
_HOLDERS: Final = f"""
    select h.* from (
        {_SOUGHT} union all
        select 'role', r.id, p.privilege from unnest(cast(:opaque as text[])) r(id)
        cross join unnest(cast(:memberships as text[])) p(privilege)) s
    cross join {_PLACES} cross join lateral (
        select distinct g.principal_type, g.principal_id from grants g
        where g.object_type = s.object_type and g.object_id = s.object_id and g.privilege = s.privilege
            and {_IN_PAGE} {_ORDERED}) h
"""  # noqa: S608 - composed of constants of this module; every value is a bound parameter

# Roles with a grant that matters, or with one from which a tuple that matters follows.
_HOLDING_ROLES: Final = f"""
    select g.principal_id as id
    from ({_SOUGHT}) s
    join grants g on g.object_type = s.object_type and g.object_id = s.object_id and g.privilege = s.privilege
    where g.principal_type = 'role' and {LIVE}
    union
    select g.principal_id from grants g
    where g.object_type = 'column' and split_part(g.object_id, '.', 1) = any(cast(:tables as text[]))
        and g.principal_type = 'role' and {LIVE}
    union
    select r.id::text from roles r where exists (
        select 1 from (
            select 'role' as subject_type, r.id::text as subject_id, c.type as object_type, c.id as object_id
            from unnest(cast(:container_types as text[]), cast(:container_ids as text[])) c(type, id)) a
        cross join lateral (select 1 {GRANTS_BELOW} and {LIVE} limit 1) held)
"""  # noqa: S608 - composed of constants of this module; every value is a bound parameter

# Direct members of at least two of the roles that matter. They can hold by several roles what no single one gives.
# Other principals that do are in one of these members, and are found there.
_COMBINED: Final = f"""
    (select g.principal_type, g.principal_id from {_PLACES} cross join grants g
    where g.object_type = 'role' and g.object_id = any(cast(:combined as text[])) and {_IN_PAGE}
    group by g.principal_type, g.principal_id having count(distinct g.object_id) > 1 {_ORDERED})
"""  # noqa: S608 - composed of constants of this module; every value is a bound parameter

_FURTHER: Final = """
    select f.type, f.id from unnest(cast(:further_types as text[]), cast(:further_ids as text[])) as f(type, id)
    where f.type <= cast(:last_type as text) and (f.type, f.id) > (cast(:after_type as text), cast(:after_id as text))
"""

# Principals with a column grant on the table, which derives a tuple on the table.
_COLUMN_HOLDERS: Final = f"""
    select h.* from unnest(cast(:tables as text[])) t(id) cross join {_PLACES} cross join lateral (
        select distinct g.principal_type, g.principal_id from grants g
        where g.object_type = 'column' and split_part(g.object_id, '.', 1) = t.id and {_IN_PAGE} {_ORDERED}) h
"""  # noqa: S608 - composed of constants of this module; every value is a bound parameter

# Principals with a grant below a container, which derives a tuple on the container. The recursion visits the principals
# in order, so a page ends as soon as it is full.
_HOLDERS_BELOW: Final = f"""
    (with recursive p(type, id) as (
        (select g.principal_type, g.principal_id from grants g
            where g.principal_type <= cast(:last_type as text)
                and (g.principal_type, g.principal_id) > (cast(:after_type as text), cast(:after_id as text))
            order by g.principal_type, g.principal_id limit 1)
        union all
        select next.* from p cross join lateral (
            select g.principal_type, g.principal_id from grants g
            where g.principal_type <= cast(:last_type as text) and (g.principal_type, g.principal_id) > (p.type, p.id)
            order by g.principal_type, g.principal_id limit 1) next)
    select p.type as principal_type, p.id as principal_id from p
    where exists (
        select 1 from (
            select p.type as subject_type, p.id as subject_id, c.type as object_type, c.id as object_id
            from unnest(cast(:container_types as text[]), cast(:container_ids as text[])) c(type, id)) a
        cross join lateral (select 1 {GRANTS_BELOW} and {LIVE} and {_ACTIVE} limit 1) held)
    limit :limit)
"""  # noqa: S608 - composed of constants of this module; every value is a bound parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The principals that can hold a relation: those with one of the grants that matter.

    - `sought`: the grants that matter.
    - `containers`: objects on which a tuple that matters follows from grants below. `tables` are those on which it
      follows from column grants.
    - `combined`: roles of which direct members of at least two are included.
    - `opaque`: roles whose direct members are included.
    - `further`: principals that are included without a grant.
    """

    sought: Sought
    containers: tuple[ObjectKey, ...] = ()
    tables: tuple[ObjectKey, ...] = ()
    combined: tuple[str, ...] = ()
    opaque: tuple[str, ...] = ()
    further: tuple[Principal, ...] = ()

    def values(self) -> dict[str, Any]:
        """Return the parameters by which statements select roles."""
        return {
            **self.sought.values(),
            "tables": [key.id for key in self.tables],
            "container_types": [key.type.value for key in self.containers],
            "container_ids": [key.id for key in self.containers],
        }


@cache
def _page_of(*, columns: bool, below: bool, combined: bool) -> TextClause:
    """Return the statement for candidates of these kinds."""
    parts = [_HOLDERS, _FURTHER]
    parts += [_COLUMN_HOLDERS] if columns else []
    parts += [_COMBINED] if combined else []
    parts += [_HOLDERS_BELOW] if below else []
    return text(
        f"select g.principal_type, g.principal_id from ({' union '.join(parts)}) g {_ORDERED}"  # noqa: S608 - constants
    )


async def holders(
    connection: AsyncConnection,
    candidates: Candidates,
    *,
    now: datetime,
    after: Principal | None,
    limit: int,
    of_type: PrincipalType | None = None,
) -> list[Principal]:
    """Return the candidates in the order of their types and ids, after the principal `after`.

    With `of_type`, return those of this type.
    """
    statement = _page_of(
        columns=bool(candidates.tables), below=bool(candidates.containers), combined=len(candidates.combined) > 1
    )
    first = ("" if of_type is None else of_type.value, "")
    start = first if after is None else max(first, (after.type.value, after.id))
    last = of_type or max(PrincipalType)
    types = [each.value for each in sorted(PrincipalType) if start[0] <= each.value <= last.value]
    values = {
        **candidates.values(),
        "opaque": list(candidates.opaque),
        "memberships": [each.value for each in GRANTABLE[ObjectType.ROLE]],
        "combined": list(candidates.combined),
        "further_types": [each.type.value for each in candidates.further],
        "further_ids": [each.id for each in candidates.further],
        "now": now,
        "after_type": start[0],
        "after_id": start[1],
        "last_type": last.value,
        "place_types": types,
        "place_ids": [start[1] if each == start[0] else "" for each in types],
        "limit": limit,
    }
    rows = await fetch_all(connection, _Holder, statement, values)
    return [Principal(PrincipalType(row.principal_type), row.principal_id) for row in rows]


_ROLES_BELOW: Final = text(
    f"""
    with recursive nested as materialized (
        select g.object_id as role, g.principal_id as member from grants g
        where g.object_type = 'role' and g.principal_type = 'role' and {LIVE}),
    below(id) as (
        select id from ({_HOLDING_ROLES}) roots
        union
        select n.member from below b join nested n on n.role = b.id)
    select id from below order by id
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)


class _Role(NamedTuple):
    id: str


async def roles_below(connection: AsyncConnection, candidates: Candidates, *, now: datetime) -> list[str]:
    """Return the roles among the candidates, and the roles that are in these."""
    rows = await fetch_all(connection, _Role, _ROLES_BELOW, {**candidates.values(), "now": now})
    return [row.id for row in rows]


# Roles are followed through every relation, because only the model decides which relations make members.
CLOSURE: Final = f"""
    with recursive closure(type, id) as (
        select a.type, a.id from unnest(cast(:types as text[]), cast(:ids as text[])) as a(type, id)
        where not (a.type = 'user' and exists (select 1 from scim_users u where u.user_id = a.id and not u.active))
        union
        select 'role', g.object_id from closure c
            join grants g on g.principal_type = c.type and g.principal_id = c.id and g.object_type = 'role'
        where {LIVE})
"""  # noqa: S608 - composed of constants of this module; every value is a bound parameter

_GRANT: Final = columns_of(GrantRow, "g")

# The lateral join looks up each combination in the unique index, whatever number of grants the principals have.
_HELD: Final = text(
    f"""
    {CLOSURE}
    select {_GRANT} from closure c
    join grants g on g.principal_type = c.type and g.principal_id = c.id and g.object_type = 'role'
    where {LIVE}
    union all
    select {_GRANT} from closure c cross join ({_SOUGHT}) s cross join lateral (
        select {_GRANT} from grants g
        where g.privilege = s.privilege and g.principal_type = c.type and g.principal_id = c.id
            and g.object_type = s.object_type and g.object_id = s.object_id
        offset 0) g
    where s.object_type <> 'role' and {LIVE}
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)


async def held_grants(
    connection: AsyncConnection, principals: Iterable[Principal], sought: Sought, *, now: datetime
) -> list[GrantRow]:
    """Return the live grants of the principals and of all roles that contain them.

    They are the memberships of roles, and the sought grants. Grants of deactivated users are left out.
    """
    some = list(principals)
    values = {
        **sought.values(),
        "types": [each.type.value for each in some],
        "ids": [each.id for each in some],
        "now": now,
    }
    return await fetch_all(connection, GrantRow, _HELD, values)


_PENDING: Final = text(
    """
    select exists (
        select 1 from outbox o
        where (o.object_type, o.object_id) in (
            select * from unnest(cast(:object_types as text[]), cast(:object_ids as text[])))
            or (o.subject_type, o.subject_id) in (select * from unnest(cast(:types as text[]), cast(:ids as text[])))
    ) as pending
    """
)


class _Pending(NamedTuple):
    pending: bool


async def is_pending(
    connection: AsyncConnection, principals: Sequence[Principal], objects: Sequence[ObjectKey]
) -> bool:
    """Return True if OpenFGA has not received a change of a tuple of these principals, or of a tuple on these
    objects.
    """
    values = {
        "types": [each.type.value for each in principals],
        "ids": [each.id for each in principals],
        "object_types": [key.type.value for key in objects],
        "object_ids": [key.id for key in objects],
    }
    return (await fetch_one(connection, _Pending, _PENDING, values)).pending
