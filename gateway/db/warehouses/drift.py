# SPDX-License-Identifier: Apache-2.0
"""Statements that find and repair drift: differences between OpenFGA's tuples and the rows that no delivery explains.

`desired_tuples` alone decides the desired state of a tuple. This module lists the keys that rows *may* require, to find
missing tuples. It also stores the lease and the position of the process that reads OpenFGA's change feed, and records
grants that were found in OpenFGA.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import func, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import TABULARS, ObjectKey, ObjectType, table_of
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Database
from gateway.db.grants import grants
from gateway.db.grants.grant_ends import GrantRow
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import columns_of, fetch_all
from gateway.db.schema.changes import drift_watch
from gateway.db.schema.grants import grants as grants_table
from gateway.db.schema.objects import IN_PROJECTS
from gateway.db.schema.tables import namespaces
from gateway.db.schema.tables import tables as tables_table
from gateway.db.schema.warehouses import projects, server, warehouses
from gateway.db.tables import tables
from gateway.db.tuples import managed_access
from gateway.db.tuples.desired_tuples import containers_of, following

#: The `granted_by` of an adopted grant: another client wrote its tuple into OpenFGA.
EXTERNAL: Final = "external"


@dataclass(frozen=True, slots=True)
class Page:
    """Keys that rows may require, each once. The next page starts at `after`, which is None at the end."""

    keys: Sequence[TupleKey]
    after: str | None


async def candidates(connection: AsyncConnection, source: str, *, after: str | None, limit: int) -> Page:
    """Return the keys that the next `limit` rows of `source`, which is one of SOURCES, may require.

    They may include keys that no row requires: `desired_tuples` decides.
    """
    statement, values = _STATEMENTS[source], {"after": after, "limit": limit}
    rows: Sequence[GrantRow | _Edge]
    if source == _GRANTS:
        rows = held = await fetch_all(connection, GrantRow, statement, values)
        granted = [grants.tuple_of(row) for row in held]
        where = await containers_of(connection, [key.object for key in granted])
        keys = dict.fromkeys(key for each in granted for key in following(each, where[each.object].above))
    else:
        rows = edges = await fetch_all(connection, _Edge, statement, values)
        keys = dict.fromkeys(key for row in edges for key in _own(row))
    return Page(keys=list(keys), after=str(rows[-1].id) if len(rows) == limit else None)


async def pending(connection: AsyncConnection, keys: Sequence[TupleKey]) -> set[TupleKey]:
    """Return those of the `keys` that are in the outbox.

    A delivery will correct them, whatever their state in OpenFGA is.
    """
    rows = await connection.execute(_PENDING, _columns(keys))
    return {keys[row.ord - 1] for row in rows}


async def move_revisions(connection: AsyncConnection, *, within: Iterable[UUID], server_too: bool) -> None:
    """Change the revisions of these warehouses.

    With `server_too`, also change the server's revision, for everything outside of warehouses.
    """
    for id in sorted(set(within)):
        await connection.execute(update(warehouses).where(warehouses.c.id == id).values(revision=uuid7()))
    if server_too:
        await connection.execute(update(server).values(revision=uuid7()))


async def move_all_revisions(connection: AsyncConnection) -> None:
    """Change all revisions, so that no cached decision is used again."""
    # `move_revisions` locks the rows in the same order as deliveries do: the warehouses by id, and the server last. So
    # two transactions cannot deadlock.
    ids = [row.id for row in await connection.execute(select(warehouses.c.id))]
    await move_revisions(connection, within=ids, server_too=True)


async def adopt(connection: AsyncConnection, key: TupleKey, expires_at: datetime | None) -> list[TupleKey]:
    """Record a grant that was found in OpenFGA. Return its key and the further keys that it requires.

    Call it with the object (`grants.lock_object_shared`) and the key locked.
    """
    # The namespace is locked too, so that no concurrent move changes the path that `following` needs.
    await _lock_hierarchy(connection, key.object)
    privilege, principal = Privilege(key.relation), Principal(PrincipalType(key.subject.type), key.subject.id)
    await grants.grant(
        connection, privilege=privilege, principal=principal, on=key.object, by=EXTERNAL, expires_at=expires_at
    )
    return following(key, (await containers_of(connection, [key.object]))[key.object].above)


async def end_grant(connection: AsyncConnection, key: TupleKey) -> list[TupleKey]:
    """End a grant that OpenFGA does not have. Return its key and the further keys that it required.

    Call it with the key locked.
    """
    await _lock_hierarchy(connection, key.object)
    privilege, principal = Privilege(key.relation), Principal(PrincipalType(key.subject.type), key.subject.id)
    await grants.revoke(connection, privilege=privilege, principal=principal, on=key.object, by=EXTERNAL)
    return following(key, (await containers_of(connection, [key.object]))[key.object].above)


async def set_expiry(connection: AsyncConnection, key: TupleKey, until: datetime) -> list[TupleKey]:
    """Set the expiry of a grant to the earlier one that OpenFGA has. Return its key and the further keys that it
    requires.

    Return none if the rows expire earlier. Call it with the key locked.
    """
    if until <= await now(connection):
        return await end_grant(connection, key)
    await _lock_hierarchy(connection, key.object)
    privilege, principal = Privilege(key.relation), Principal(PrincipalType(key.subject.type), key.subject.id)
    if not await grants.set_expiry(
        connection, privilege=privilege, principal=principal, on=key.object, until=until, by=EXTERNAL
    ):
        return []
    return following(key, (await containers_of(connection, [key.object]))[key.object].above)


async def _lock_hierarchy(connection: AsyncConnection, on: ObjectKey) -> None:
    lies = table_of(on) if on.type is ObjectType.COLUMN else on
    if lies.type in TABULARS:
        await tables.containers(connection, UUID(lies.id))


async def now(connection: AsyncConnection) -> datetime:
    """Return the time of the database's clock, with which expiries are compared."""
    moment: datetime = (await connection.execute(select(func.clock_timestamp()))).scalar_one()
    return moment


# ---- the watch ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """The position in OpenFGA's change feed: the newest change that was read, its time, and its store.

    `compare_all` is set until a full comparison ends, which the feed cannot replace.
    """

    store_id: str | None
    seen_until: datetime | None
    last_change: str | None
    compare_all: bool


# The commit does not wait for the disk. If a power failure loses a lease or a position, a part of the feed is read
# again.
_NOT_WAITING_FOR_THE_DISK: Final = text("select set_config('synchronous_commit', 'off', true)")


_HELD_BY_ANOTHER: Final = DirectRead(
    text("select 1 as held from drift_watch where holder <> cast(:holder as uuid) and held_until >= clock_timestamp()")
)

#: One statement with its setting, because each worker process executes it twice a second. The setting must be read to
#: take effect, and ends with the transaction of the statement.
_ACQUIRE: Final = DirectRead(
    text(
        """
        with quick as materialized (select set_config('synchronous_commit', 'off', true) as off)
        insert into drift_watch as w (singleton, holder, held_until)
        select quick.off = 'off', cast(:holder as uuid),
            clock_timestamp() + make_interval(secs => cast(:seconds as double precision))
        from quick
        on conflict (singleton) do update set holder = excluded.holder, held_until = excluded.held_until
            where w.holder = excluded.holder or w.held_until is null or w.held_until < clock_timestamp()
        returning w.store_id, w.seen_until, w.last_change, w.compare_all
        """
    )
)


async def acquire_lease(database: Database, holder: UUID, *, seconds: float, holds: bool) -> Watch | None:
    """Take the lease of the feed's reader, or extend it by `seconds`. Return None if another process holds it.

    A process without the lease (`holds` is False) reads it first, because taking it would lock its row. Raises
    DatabaseUnavailable.
    """
    if not holds and await database.read_all(_HELD_BY_ANOTHER, {"holder": holder}):
        return None
    rows = await database.execute_repeatable(_ACQUIRE, {"holder": holder, "seconds": seconds})
    return Watch(**rows[0]._asdict()) if rows else None


async def store_position(connection: AsyncConnection, holder: UUID, watch: Watch) -> None:
    """Store the position in the feed if `holder` still holds the lease."""
    await connection.execute(_NOT_WAITING_FOR_THE_DISK)
    await connection.execute(
        update(drift_watch)
        .where(drift_watch.c.holder == holder)
        .values(
            store_id=watch.store_id,
            seen_until=watch.seen_until,
            last_change=watch.last_change,
            compare_all=watch.compare_all,
        )
    )


async def release_lease(connection: AsyncConnection, holder: UUID) -> None:
    """Release the lease, so that another process does not have to wait for its end."""
    await connection.execute(update(drift_watch).where(drift_watch.c.holder == holder).values(held_until=None))


# ---- rows to keys ---------------------------------------------------------------------------------------------------


class _Edge(NamedTuple):
    """An object and its parent."""

    id: UUID | str
    object_type: str
    relation: str
    parent_type: str
    parent_id: UUID | str
    managed_access: bool


def _edge(row: _Edge) -> TupleKey:
    """Return the edge from an object to its parent."""
    parent = ObjectKey(ObjectType(row.parent_type), str(row.parent_id))
    return TupleKey(parent, row.relation, ObjectKey(ObjectType(row.object_type), str(row.id)))


def _own(row: _Edge) -> list[TupleKey]:
    """Return the keys that an object's own row requires: the edge to its parent, and the flag of managed access if it
    is set.
    """
    edge = _edge(row)
    return [edge, *(managed_access.keys(edge.object) if row.managed_access else ())]


_EDGE_ROWS: Final = {
    projects.name: """
        select p.id, 'project' as object_type, 'server' as relation, 'server' as parent_type, s.id as parent_id,
               false as managed_access
        from projects p cross join server s
        where (cast(:after as text) is null or p.id > :after) order by p.id limit :limit
    """,
    warehouses.name: """
        select id, 'warehouse' as object_type, 'project' as relation, 'project' as parent_type, project_id as parent_id,
               managed_access
        from warehouses where (cast(:after as text) is null or id > cast(:after as uuid)) order by id limit :limit
    """,
    **{
        table.name: f"""
            select id, '{type.value}' as object_type, 'project' as relation, 'project' as parent_type,
                   project_id as parent_id, false as managed_access
            from {table.name} where (cast(:after as text) is null or id > cast(:after as uuid))
            order by id limit :limit
        """  # noqa: S608 - composed of names of the schema
        for type, table in IN_PROJECTS.items()
    },
    namespaces.name: """
        select id, 'namespace' as object_type, 'parent' as relation,
               case when parent_id is null then 'warehouse' else 'namespace' end as parent_type,
               coalesce(parent_id, warehouse_id) as parent_id, managed_access
        from namespaces where (cast(:after as text) is null or id > cast(:after as uuid)) order by id limit :limit
    """,
    # A staged table has no owner yet and no tuples.
    tables_table.name: """
        select id, kind as object_type, 'parent' as relation, 'namespace' as parent_type, namespace_id as parent_id,
               false as managed_access
        from tables where staged_by is null and (cast(:after as text) is null or id > cast(:after as uuid))
        order by id limit :limit
    """,
}

_GRANTS: Final = grants_table.name
_STATEMENTS: Final = {
    **{source: text(statement) for source, statement in _EDGE_ROWS.items()},
    _GRANTS: text(
        f"select {columns_of(GrantRow, 'g')} from grants g "  # noqa: S608 - composed of names of the schema
        "where (cast(:after as text) is null or g.id > cast(:after as uuid)) order by g.id limit :limit"
    ),
}

#: The tables with the rows that require tuples. The search for missing tuples reads them in this order: the hierarchy
#: first.
SOURCES: Final = tuple(_STATEMENTS)

_PENDING: Final = text(
    """
    select a.ord from unnest(cast(:subject_types as text[]), cast(:subject_ids as text[]), cast(:relations as text[]),
                             cast(:object_types as text[]), cast(:object_ids as text[]))
        with ordinality as a(subject_type, subject_id, relation, object_type, object_id, ord)
    where exists (select 1 from outbox o where o.object_type = a.object_type and o.object_id = a.object_id
        and o.relation = a.relation and o.subject_type = a.subject_type and o.subject_id = a.subject_id)
    """
)


def _columns(keys: Sequence[TupleKey]) -> dict[str, list[str]]:
    return {
        "subject_types": [key.subject.type.value for key in keys],
        "subject_ids": [key.subject.id for key in keys],
        "relations": [key.relation for key in keys],
        "object_types": [key.object.type.value for key in keys],
        "object_ids": [key.object.id for key in keys],
    }
