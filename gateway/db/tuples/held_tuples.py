# SPDX-License-Identifier: Apache-2.0
"""Read the tuples that the rows require for one decision: the tuples of the caller, and the edges above the objects.

The built-in authorizer decides by them, without OpenFGA's tuples. `desired_tuples` computes whether given keys are
required; this module finds the keys. Both must agree, which `tests/integration/test_row_authorizer.py` checks against
OpenFGA.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey, ObjectType, table_of
from gateway.access.tuples import ALL_USERS, MANAGED_ACCESS, Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Database
from gateway.db.pools.rows import fetch_all
from gateway.db.schema.objects import IN_PROJECTS
from gateway.db.tuples.desired_tuples import Containers, containers_of, following

# Roles are followed through every relation, so that only the model decides which relations make members. Expired grants
# are left out by the evaluation, because it uses the time of the request.
_GRANTS: Final = text(
    """
    with recursive held(type, id) as (
        select * from unnest(cast(:types as text[]), cast(:ids as text[]))
        union
        select 'role', g.object_id from held h
            join grants g on g.principal_type = h.type and g.principal_id = h.id and g.object_type = 'role')
    select g.principal_type, g.principal_id, g.privilege, g.object_type, g.object_id,
        case when bool_and(g.expires_at is not null) then max(g.expires_at) end as until
    from held h join grants g on g.principal_type = h.type and g.principal_id = h.id
    where not (h.type = 'user' and exists (select 1 from scim_users u where u.user_id = h.id and not u.active))
    group by 1, 2, 3, 4, 5
    """
)

_PROJECTS: Final = text(
    "select p.id, s.id::text as server_id from projects p cross join server s where p.id = any(cast(:ids as text[]))"
)
_OF_PROJECTS: Final = text(
    " union all ".join(
        f"select '{type.value}' as type, id::text, project_id from {table.name} "  # noqa: S608 - names of the schema
        "where id::text = any(cast(:ids as text[]))"
        for type, table in IN_PROJECTS.items()
    )
)
_MANAGED: Final = text(
    """
    select 'warehouse' as type, id::text from warehouses where managed_access and id::text = any(cast(:ids as text[]))
    union all
    select 'namespace', id::text from namespaces where managed_access and id::text = any(cast(:ids as text[]))
    """
)
_GRANTED_COLUMNS: Final = text(
    "select distinct object_id as id from grants where object_type = 'column' and object_id = any(cast(:ids as text[]))"
)


class HeldTuples:
    """Reads the required tuples on the primary database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(
        self, principals: Sequence[Principal], objects: Sequence[ObjectKey]
    ) -> Mapping[TupleKey, datetime | None]:
        """Return the required tuples for the principals and the objects, each with its expiry.

        They are the tuples of the principals and of roles that contain them, the edges above the objects, and the flags
        of the containers. Expired tuples may be included. All rows are read in one transaction. Raises
        DatabaseUnavailable.
        """
        async with self._database.transaction() as connection:
            values = {"types": [each.type.value for each in principals], "ids": [each.id for each in principals]}
            grants = [(_grant(row), row.until) for row in await fetch_all(connection, _Grant, _GRANTS, values)]
            placed = await containers_of(connection, [*(key.object for key, _ in grants), *objects])
            held = _with_derived(grants, placed)
            held |= dict.fromkeys(await _edges(connection, objects, placed))
            return held


async def structure_above(
    connection: AsyncConnection, objects: Sequence[ObjectKey]
) -> tuple[list[TupleKey], dict[ObjectKey, Containers]]:
    """Return (the edges above the objects with the managed access flags of their containers, the location of each
    object).
    """
    placed = await containers_of(connection, objects)
    return await _edges(connection, objects, placed), placed


class _Grant(NamedTuple):
    principal_type: str
    principal_id: str
    privilege: str
    object_type: str
    object_id: str
    until: datetime | None


def _grant(row: _Grant) -> TupleKey:
    subject = Principal(PrincipalType(row.principal_type), row.principal_id)
    return TupleKey(subject, row.privilege, ObjectKey(ObjectType(row.object_type), row.object_id))


def _with_derived(
    grants: Iterable[tuple[TupleKey, datetime | None]], placed: Mapping[ObjectKey, Containers]
) -> dict[TupleKey, datetime | None]:
    """Return the tuples that the grants require, including derived ones, each with the latest of its expiries."""
    held: dict[TupleKey, datetime | None] = {}
    for grant, until in grants:
        for key in following(grant, placed[grant.object].above):
            if isinstance(key.subject, ObjectKey):
                continue  # the edge of a column, which `_edges` reads
            if key not in held:
                held[key] = until
            elif (known := held[key]) is not None:
                held[key] = None if until is None else max(known, until)
    return held


async def _edges(
    connection: AsyncConnection, objects: Sequence[ObjectKey], placed: Mapping[ObjectKey, Containers]
) -> list[TupleKey]:
    """Return the edges from the objects up to the server, and the managed access flags of their containers."""
    found: list[TupleKey] = []
    projects: set[str] = set()
    ids = [key.id for key in objects if key.type in IN_PROJECTS]
    for row in await connection.execute(_OF_PROJECTS, {"ids": ids}) if ids else ():
        project = ObjectKey(ObjectType.PROJECT, row.project_id)
        found.append(TupleKey(project, "project", ObjectKey(ObjectType(row.type), row.id)))
        projects.add(row.project_id)
    columns = [key.id for key in objects if key.type is ObjectType.COLUMN]
    granted = {row.id for row in await connection.execute(_GRANTED_COLUMNS, {"ids": columns})} if columns else set()
    chains = [_chain(key, placed[key], granted) for key in objects]
    found += [
        TupleKey(above, "project" if above.type is ObjectType.PROJECT else "parent", below)
        for chain in chains
        for above, below in zip(chain, chain[1:], strict=False)
    ]
    projects |= {key.id for chain in chains for key in chain if key.type is ObjectType.PROJECT}
    for row in await connection.execute(_PROJECTS, {"ids": list(projects)}) if projects else ():
        server = ObjectKey(ObjectType.SERVER, row.server_id)
        found.append(TupleKey(server, "server", ObjectKey(ObjectType.PROJECT, row.id)))
    containers = {key.id for chain in chains for key in chain if key.type in _FLAGGED}
    everyone = Principal(PrincipalType.USER, ALL_USERS)
    for row in await connection.execute(_MANAGED, {"ids": list(containers)}) if containers else ():
        found.append(TupleKey(everyone, MANAGED_ACCESS, ObjectKey(ObjectType(row.type), row.id)))
    return found


_FLAGGED: Final = frozenset({ObjectType.WAREHOUSE, ObjectType.NAMESPACE})


def _chain(key: ObjectKey, containers: Containers, granted: set[str]) -> list[ObjectKey]:
    """Return the containers of an object, starting with the project, and then the object.

    A column without a grant has no edge. Objects outside of projects, and absent ones, have no containers.
    """
    if key.type is not ObjectType.COLUMN:
        return [*containers.above, key]
    if not containers.above:
        return [key]
    return [*containers.above, table_of(key), *([key] if key.id in granted else [])]
