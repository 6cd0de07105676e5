# SPDX-License-Identifier: Apache-2.0
"""Roles in roles: all direct and indirect members of a role, all roles of a principal, and checks of new members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.pools.rows import columns_of, fetch_all
from gateway.db.principals.roles import MemberRow, RoleRow
from gateway.iceberg.identifiers import fold

#: Maximum number of steps from a role to the outermost role that contains it. OpenFGA refuses to resolve more than 25.
MAX_DEPTH = 10


@dataclass(frozen=True, slots=True)
class Nesting:
    """The effect of new members of a role.

    It has the new members that already contain the role, and the length of the longest chain of roles.
    """

    around: tuple[str, ...]
    depth: int


async def nesting(connection: AsyncConnection, role_id: str, members: Sequence[str]) -> Nesting:
    """Compute the effect if `members` become members or owners of the role. Owners are members too.

    In all processes, such changes run one at a time until their transactions end: two edges that are valid alone may
    form a cycle together.
    """
    await connection.execute(text("select pg_advisory_xact_lock(hashtextextended('role nesting', 7))"))
    found = await connection.execute(_NESTING, {"role": role_id, "members": list(members), "deep": MAX_DEPTH + 1})
    row = found.one()
    return Nesting(around=tuple(row.around or ()), depth=1 + row.above + row.below)


# The steps are counted, so that the recursion ends even if roles contain each other, which adopted tuples can cause.
_NESTING = text(
    """
    with recursive edges as (
        select principal_id as inner_id, object_id as outer_id from grants
        where principal_type = 'role' and object_type = 'role' and privilege in ('assignee', 'ownership')
            and (expires_at is null or expires_at > clock_timestamp())
    ), up(id, n) as (
        select cast(:role as text), 0
        union select e.outer_id, u.n + 1 from up u join edges e on e.inner_id = u.id where u.n < :deep
    ), down(id, n) as (
        select m, 0 from unnest(cast(:members as text[])) m
        union select e.inner_id, d.n + 1 from down d join edges e on e.outer_id = d.id where d.n < :deep
    )
    select (select array_agg(distinct up.id) from up where up.id = any(cast(:members as text[]))) as around,
        (select max(n) from up) as above, (select max(n) from down) as below
    """
)


async def all_roles_of(
    connection: AsyncConnection, type: PrincipalType, id: str, *, project_id: str | None = None
) -> Sequence[RoleRow]:
    """Return the roles that contain the principal by live grants, directly or through other roles, ordered by name.

    `project_id` limits the result to one project. Owners of a role are members (`fga_model/role.fga`).
    """
    values = {"type": type.value, "id": id, "project_id": project_id}
    return await fetch_all(connection, RoleRow, _ALL_ROLES_OF, values)


async def all_members(
    connection: AsyncConnection,
    role_id: str,
    *,
    type: PrincipalType | None,
    after: tuple[str, str] | None,
    limit: int,
) -> Sequence[MemberRow]:
    """Return the members of a role by live grants, directly or through other roles, each once.

    The page starts after `after`.
    """
    kind, id = after or (None, None)
    values = {"role": role_id, "type": None if type is None else type.value, "kind": kind, "id": id, "limit": limit}
    return await fetch_all(connection, MemberRow, _ALL_MEMBERS, values)


# The recursion adds each role once, so it ends even if roles contain each other. Its cost depends on the roles that it
# reaches.
_EDGES = """
    select g.principal_type, g.principal_id, g.object_id from grants g
    where g.object_type = 'role' and g.privilege in ('assignee', 'ownership')
        and (g.expires_at is null or g.expires_at > clock_timestamp())
"""

_ALL_ROLES_OF = text(
    f"""
    with recursive up(id) as (
        select e.object_id from ({_EDGES} and g.principal_type = :type and g.principal_id = :id) e
        union
        select e.object_id from up
        join lateral ({_EDGES} and g.principal_type = 'role' and g.principal_id = up.id) e on true
    )
    select {columns_of(RoleRow, "r")} from up join roles r on r.id = up.id::uuid
    where (cast(:project_id as text) is null or r.project_id = :project_id) and not (:type = 'role' and up.id = :id)
    order by r.name_key, r.id
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)

_ALL_MEMBERS = text(
    f"""
    with recursive down(id) as (
        select cast(:role as text)
        union
        select e.principal_id from down
        join lateral ({_EDGES} and g.object_id = down.id and g.principal_type = 'role') e on true
    )
    select distinct e.principal_type, e.principal_id from down
    join lateral ({_EDGES} and g.object_id = down.id) e on true
    where (cast(:type as text) is null or e.principal_type = :type) and e.principal_id <> :role
        and (cast(:kind as text) is null or (e.principal_type, e.principal_id) > (:kind, :id))
    order by e.principal_type, e.principal_id limit :limit
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)


async def admin_privileges(connection: AsyncConnection, role_id: str) -> list[tuple[Privilege, ObjectKey]]:
    """Return the live administrative grants (privilege, object) of a role and of the roles that contain it.

    These are all privileges on the server, and `project_admin`. Security administrators of a project may add members to
    each of its roles, but may not grant these privileges.
    """
    rows = await connection.execute(
        _SELECT_ADMIN_PRIVILEGES,
        {"role": role_id, "deep": MAX_DEPTH + 1, "offices": [privilege.value for privilege in ADMIN_PRIVILEGES]},
    )
    return [(Privilege(row.privilege), ObjectKey(ObjectType(row.object_type), row.object_id)) for row in rows]


async def administers_server(connection: AsyncConnection, role_id: str) -> bool:
    """Return True if the role, or a role that contains it, holds an administrative privilege on the server."""
    return any(on.type is ObjectType.SERVER for _, on in await admin_privileges(connection, role_id))


async def is_subject(connection: AsyncConnection, principal: Principal) -> bool:
    """Return True if a data policy has as a subject the principal itself, or a role that contains it."""
    values = {"type": principal.type.value, "id": principal.id}
    return (await connection.execute(_SUBJECT, values)).first() is not None


_SUBJECT = text(
    f"""
    with recursive held(type, id) as (
        select cast(:type as text), cast(:id as text)
        union
        select 'role', e.object_id from held
        join lateral ({_EDGES} and g.principal_type = held.type and g.principal_id = held.id) e on true
    )
    select 1 from held join grants g on g.principal_type = held.type and g.principal_id = held.id
    where g.object_type = 'data_policy' and g.privilege = 'subject'
        and (g.expires_at is null or g.expires_at > clock_timestamp())
    limit 1
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)


class Restriction(NamedTuple):
    """A restriction of a principal by a data policy.

    Without a `mapping`, the principal is a subject of the policy. Otherwise it has a value in a mapping table, and the
    policy tests the value in such a way that removing it can show more rows.
    """

    policy_id: str
    mapping: str = ""
    value: str = ""


async def restricted_until(connection: AsyncConnection, principals: Sequence[Principal]) -> dict[Restriction, datetime]:
    """Return the restrictions of the principals, including those by their roles, with the time at which each ends.

    The time is in the year 9999 if a restriction has no expiry.
    """
    asked = [{"type": each.type.value, "id": each.id} for each in principals]
    found: dict[Restriction, datetime] = {}
    for row in await connection.execute(_RESTRICTED_UNTIL, {"principals": msgspec.json.encode(asked).decode()}):
        if row.tested is None or fold(row.tested) == row.name_key:
            key = (
                Restriction(row.policy_id)
                if row.tested is None
                else Restriction(row.policy_id, row.name_key, row.value)
            )
            found[key] = max(found.get(key, row.until), row.until)
    return found


# The last select finds tests of row filters that become false if a principal gets a further value: a negated `in`, and
# a comparison, which needs exactly one value.
_RESTRICTED_UNTIL = text(
    """
    with recursive held(type, id, until) as (
        select p.type, p.id, cast('infinity' as timestamptz)
        from jsonb_to_recordset(cast(:principals as jsonb)) as p(type text, id text)
        union
        select 'role', g.object_id, least(held.until, coalesce(g.expires_at, 'infinity'))
        from held join grants g on g.principal_type = held.type and g.principal_id = held.id
        where g.object_type = 'role' and g.privilege in ('assignee', 'ownership')
            and (g.expires_at is null or g.expires_at > clock_timestamp())
    )
    select g.object_id as policy_id, null as tested, null as name_key, null as value,
        least(held.until, coalesce(g.expires_at, 'infinity'), timestamptz '9999-01-01 UTC') as until
    from held join grants g on g.principal_type = held.type and g.principal_id = held.id
    where g.object_type = 'data_policy' and g.privilege = 'subject'
        and (g.expires_at is null or g.expires_at > clock_timestamp())
    union all
    select cast(p.id as text), attribute ->> 'name', m.name_key, e.value,
        least(held.until, timestamptz '9999-01-01 UTC')
    from held join mapping_entries e on e.principal_type = held.type and e.principal_id = held.id
        join mapping_tables m on m.id = e.mapping_id
        join data_policies p on p.project_id = m.project_id
        cross join lateral (
            select jsonb_path_query(p.definition, '$.** ? (@.type == "compare").value')
            union all
            select jsonb_path_query(p.definition, '$.** ? (@.type == "in" && @.negated == true).values')
        ) as a(attribute)
    where attribute ->> 'source' = 'mapping'
        and exists (select 1 from data_policy_bindings b where b.policy_id = p.id)
    """
)


ADMIN_PRIVILEGES = (*GRANTABLE[ObjectType.SERVER], Privilege.PROJECT_ADMIN)

_SELECT_ADMIN_PRIVILEGES = text(
    """
    with recursive up(id, n) as (
        select cast(:role as text), 0
        union select g.object_id, u.n + 1 from up u join grants g
            on g.principal_type = 'role' and g.principal_id = u.id and g.object_type = 'role'
            and g.privilege in ('assignee', 'ownership') and (g.expires_at is null or g.expires_at > clock_timestamp())
            where u.n < :deep
    )
    select distinct g.privilege, g.object_type, g.object_id from up join grants g
        on g.principal_type = 'role' and g.principal_id = up.id and g.privilege = any(cast(:offices as text[]))
        and (g.expires_at is null or g.expires_at > clock_timestamp())
    """
)
