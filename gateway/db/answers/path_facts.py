# SPDX-License-Identifier: Apache-2.0
"""Read the facts that decide about one principal and one object, with the grants behind each tuple.

The facts are the tuples that rows require: grants on the object and its containers, memberships in roles, edges of the
hierarchy, flags of managed access, and derived tuples on the path. Grants elsewhere are not read, so the cost does not
depend on the number of all grants of the principal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import READ_COLUMNS, Principal, PrincipalType, TupleKey
from gateway.db.grants.grant_ends import GrantRow
from gateway.db.pools.rows import columns_of, fetch_all
from gateway.db.tuples.desired_tuples import TRAVERSE, desired_tuples
from gateway.db.tuples.held_tuples import structure_above

_CONTAINERS: Final = frozenset({ObjectType.PROJECT, ObjectType.WAREHOUSE, ObjectType.NAMESPACE})

_HELD: Final = """
    with recursive held(type, id) as (
        select * from unnest(cast(:types as text[]), cast(:ids as text[]))
        union
        select 'role', g.object_id from held h
            join grants g on g.principal_type = h.type and g.principal_id = h.id and g.object_type = 'role'
        where g.expires_at is null or g.expires_at > cast(:now as timestamptz))
"""

# A deactivated user has no tuples, so its grants are no facts.
_GRANTS: Final = text(
    f"""
    {_HELD}, path(type, id) as (
        select * from unnest(cast(:path_types as text[]), cast(:path_ids as text[])))
    select {columns_of(GrantRow, "g")} from grants g join held h on g.principal_type = h.type and g.principal_id = h.id
    where (g.object_type = 'role' or exists (
            select 1 from path p where p.type = g.object_type and p.id = g.object_id))
        and (g.expires_at is null or g.expires_at > cast(:now as timestamptz))
        and not (h.type = 'user' and exists (select 1 from scim_users u where u.user_id = h.id and not u.active))
    order by g.id
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)

_ROLE_GRANTS: Final = text(
    f"""
    with path(type, id) as (select * from unnest(cast(:path_types as text[]), cast(:path_ids as text[])))
    select {columns_of(GrantRow, "g")} from path p join grants g on g.object_type = p.type and g.object_id = p.id
    where g.principal_type = 'role' and (g.expires_at is null or g.expires_at > cast(:now as timestamptz))
    order by g.id limit :limit
    """  # noqa: S608 - composed of constants of this module; every value is a bound parameter
)


@dataclass(frozen=True, slots=True)
class PathFacts:
    """The facts about some principals and one object.

    - `path`: the object and all of its containers, in no particular order.
    - `tuples`: every tuple that the rows require, with its expiry.
    - `grants`: the live grants behind a tuple. Edges, flags and derived tuples have none.
    """

    path: frozenset[ObjectKey]
    tuples: Mapping[TupleKey, datetime | None]
    grants: Mapping[TupleKey, tuple[GrantRow, ...]]


async def read_path_facts(
    connection: AsyncConnection, principals: Sequence[Principal], object: ObjectKey, *, now: datetime
) -> PathFacts:
    """Return the facts that decide about the principals and the object at `now`, the time of the decision.

    For a past time, the connection must read the rows of that time (`gateway.db.answers.past`).
    """
    edges, placed = await structure_above(connection, [object])
    path = {object, *placed[object].above} | {key.object for key in edges}
    path |= {key.subject for key in edges if isinstance(key.subject, ObjectKey)}
    rows = await _grants_on(connection, principals, path, now=now)
    grants = by_tuple(rows)
    tuples: dict[TupleKey, datetime | None] = dict.fromkeys(edges)
    tuples |= {key: expiry_of(some) for key, some in grants.items()}
    holders = {*principals, *(_role(row.object_id) for row in rows if row.object_type == ObjectType.ROLE.value)}
    tuples |= await desired_tuples(connection, _derived(holders, path))
    return PathFacts(frozenset(path), tuples, grants)


async def _grants_on(
    connection: AsyncConnection, principals: Sequence[Principal], path: Collection[ObjectKey], *, now: datetime
) -> Sequence[GrantRow]:
    """Return the live grants to the principals and their roles, on objects of the path and on roles."""
    values = {"types": [each.type.value for each in principals], "ids": [each.id for each in principals]}
    return await fetch_all(connection, GrantRow, _GRANTS, {**values, **_path_values(path), "now": now})


async def role_grants(
    connection: AsyncConnection, path: frozenset[ObjectKey], *, now: datetime, limit: int
) -> Mapping[TupleKey, tuple[GrantRow, ...]]:
    """Return at most `limit` live grants of roles on the objects of a path, oldest first."""
    rows = await fetch_all(connection, GrantRow, _ROLE_GRANTS, {**_path_values(path), "now": now, "limit": limit})
    return by_tuple(rows)


def by_tuple(rows: Sequence[GrantRow]) -> dict[TupleKey, tuple[GrantRow, ...]]:
    """Return the grants by the tuple that they require. Several grants can require one tuple."""
    found: dict[TupleKey, tuple[GrantRow, ...]] = {}
    for row in dict.fromkeys(rows):
        key = TupleKey(row.principal, row.privilege, row.object)
        found[key] = (*found.get(key, ()), row)
    return found


def expiry_of(grants: Sequence[GrantRow]) -> datetime | None:
    """Return the expiry of the tuple of these grants: the latest one, None if a grant has none."""
    ends = [each.expires_at for each in grants]
    return None if None in ends else max(end for end in ends if end is not None)


def _path_values(path: Collection[ObjectKey]) -> dict[str, list[str]]:
    ordered = sorted(path, key=lambda key: (key.type.value, key.id))
    return {"path_types": [key.type.value for key in ordered], "path_ids": [key.id for key in ordered]}


def _role(id: str) -> Principal:
    return Principal(PrincipalType.ROLE, id)


def _derived(holders: set[Principal], path: set[ObjectKey]) -> list[TupleKey]:
    """Return the keys of derived tuples that can exist for the holders on the path."""
    keys = [TupleKey(holder, TRAVERSE, key) for holder in holders for key in path if key.type in _CONTAINERS]
    keys += [TupleKey(holder, READ_COLUMNS, key) for holder in holders for key in path if key.type is ObjectType.TABLE]
    return keys
