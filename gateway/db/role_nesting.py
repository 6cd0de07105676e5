# SPDX-License-Identifier: Apache-2.0
"""Roles in roles: who is in what through them, and what they mean for edges that are to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.privileges import Privilege
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.tuples import PrincipalType
from gateway.db.rows import AnyRow, columns_of
from gateway.db.schema.roles import roles

#: Edges from a role to the outermost role it is in. OpenFGA follows 25 before it refuses.
MAX_DEPTH = 10


@dataclass(frozen=True, slots=True)
class Nesting:
    """What roles becoming members of a role would mean: those that are around it already, and the longest chain."""

    around: tuple[str, ...]
    depth: int


async def nesting(connection: AsyncConnection, role_id: str, members: Sequence[str]) -> Nesting:
    """What it would mean for `members` to become members (or owners, which is the same) of the role.

    One such change at a time in all processes until the transaction ends: two edges that are harmless alone may close a
    circle together.
    """
    await connection.execute(text("select pg_advisory_xact_lock(hashtextextended('role nesting', 7))"))
    found = await connection.execute(_NESTING, {"role": role_id, "members": list(members), "deep": MAX_DEPTH + 1})
    row = found.one()
    return Nesting(around=tuple(row.around or ()), depth=1 + row.above + row.below)


# Steps are counted, so that each walk ends even if circles exist from elsewhere (tuples adopted from outside).
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
) -> Sequence[AnyRow]:
    """The roles, of one project if one is given, that somebody is in by live grants, directly or through other roles,
    by name. Owners of a role are in it (`fga_model/role.fga`).
    """
    values = {"type": type.value, "id": id, "project_id": project_id}
    return (await connection.execute(_ALL_ROLES_OF, values)).all()


async def all_members(
    connection: AsyncConnection,
    role_id: str,
    *,
    type: PrincipalType | None,
    after: tuple[str, str] | None,
    limit: int,
) -> Sequence[AnyRow]:
    """Who is in a role by live grants, directly or through other roles, each once: rows of `principal_type` and
    `principal_id`, in their order, those after `after`.
    """
    kind, id = after or (None, None)
    values = {"role": role_id, "type": None if type is None else type.value, "kind": kind, "id": id, "limit": limit}
    return (await connection.execute(_ALL_MEMBERS, values)).all()


# Each walk adds a role once, so it ends whatever circles there are and costs what is reached.
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
    select {columns_of(roles, "r")} from up join roles r on r.id = up.id::uuid
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
    """  # noqa: S608 - as above
)


async def offices(connection: AsyncConnection, role_id: str) -> list[tuple[Privilege, ObjectKey]]:
    """The live grants of an office to a role or to a role it is in: (privilege, object).

    Offices are `admin`, `operator` and `provisioner` of the server and `project_admin`: security administrators of a
    project fill each role of it and may give none of these.
    """
    rows = await connection.execute(
        _OFFICES, {"role": role_id, "deep": MAX_DEPTH + 1, "offices": [office.value for office in OFFICES]}
    )
    return [(Privilege(row.privilege), ObjectKey(ObjectType(row.object_type), row.object_id)) for row in rows]


async def leads_to_the_server(connection: AsyncConnection, role_id: str) -> bool:
    """Whether the role, or a role it is in, has an office on the server now."""
    return any(on.type is ObjectType.SERVER for _, on in await offices(connection, role_id))


OFFICES = (Privilege.ADMIN, Privilege.OPERATOR, Privilege.PROVISIONER, Privilege.PROJECT_ADMIN)

_OFFICES = text(
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
