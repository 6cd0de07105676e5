# SPDX-License-Identifier: Apache-2.0
"""Statements for finding and repairing what differs between the rows and OpenFGA.

What a tuple is to be is said by `wanted` alone. Here is only which keys rows *may* want, to look for missing ones; who
holds the watch; and the recording of a grant that was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from sqlalchemy import func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.access.privileges import Privilege
from gateway.access.refs import TABULARS, ObjectKey, ObjectType, table_of
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db import grants, managed_access, tables
from gateway.db.desired_tuples import following, places
from gateway.db.rows import AnyRow, columns_of
from gateway.db.schema.drift import drift_watch
from gateway.db.schema.grants import grants as grants_table
from gateway.db.schema.servers import server
from gateway.db.schema.warehouses import warehouses

#: Who granted what was written into OpenFGA by somebody else and then adopted.
EXTERNAL: Final = "external"


class Source(StrEnum):
    """The rows that want tuples, in the order in which missing ones are looked for: the hierarchy first."""

    PROJECTS = "projects"
    WAREHOUSES = "warehouses"
    ROLES = "roles"
    NAMESPACES = "namespaces"
    TABLES = "tables"
    GRANTS = "grants"


@dataclass(frozen=True, slots=True)
class Page:
    """Some keys that rows may want, each once; `after` continues behind them, None at the end."""

    keys: Sequence[TupleKey]
    after: str | None


async def candidates(connection: AsyncConnection, source: Source, *, after: str | None, limit: int) -> Page:
    """The keys that the next `limit` rows of `source` may want: a superset, `wanted` tells which they do."""
    rows = (await connection.execute(_STATEMENTS[source], {"after": after, "limit": limit})).all()
    if source is Source.GRANTS:
        granted = [grants.tuple_of(row) for row in rows]
        where = await places(connection, [key.object for key in granted])
        keys = dict.fromkeys(key for each in granted for key in following(each, where[each.object].above))
    else:
        keys = dict.fromkeys(key for row in rows for key in _own(row))
    return Page(keys=list(keys), after=str(rows[-1].id) if len(rows) == limit else None)


async def pending(connection: AsyncConnection, keys: Sequence[TupleKey]) -> set[TupleKey]:
    """Those of `keys` that wait in the outbox: whatever they are in OpenFGA now, somebody is on the way to mend it."""
    rows = await connection.execute(_PENDING, _columns(keys))
    return {keys[row.ord - 1] for row in rows}


async def move_revisions(connection: AsyncConnection, *, within: Iterable[UUID], server_too: bool) -> None:
    """Fresh revisions for these warehouses and, with `server_too`, for everything outside of them."""
    for id in sorted(set(within)):
        await connection.execute(update(warehouses).where(warehouses.c.id == id).values(revision=uuid7()))
    if server_too:
        await connection.execute(update(server).values(revision=uuid7()))


async def move_all_revisions(connection: AsyncConnection) -> None:
    """Fresh revisions for everything: no decision that was remembered before is used again."""
    # In the order in which deliveries take several, so that two cannot wait for each other.
    ids = [row.id for row in await connection.execute(select(warehouses.c.id))]
    await move_revisions(connection, within=ids, server_too=True)


async def adopt(connection: AsyncConnection, key: TupleKey, expires_at: datetime | None) -> list[TupleKey]:
    """Record a grant that was found in OpenFGA; the keys that follow from it, its own among them.

    Call it with the object held (`grants.hold_object`) and the key locked.
    """
    # Held with the namespace it lies in, so that no move makes the way that is read here an old one.
    await _hold_way(connection, key.object)
    privilege, principal = Privilege(key.relation), Principal(PrincipalType(key.subject.type), key.subject.id)
    await grants.give(
        connection, privilege=privilege, principal=principal, on=key.object, by=EXTERNAL, expires_at=expires_at
    )
    return following(key, (await places(connection, [key.object]))[key.object].above)


async def disown(connection: AsyncConnection, key: TupleKey) -> list[TupleKey]:
    """End a grant that OpenFGA does not have; the keys that followed from it, its own among them.

    Call it with the key locked.
    """
    await _hold_way(connection, key.object)
    privilege, principal = Privilege(key.relation), Principal(PrincipalType(key.subject.type), key.subject.id)
    await grants.take(connection, privilege=privilege, principal=principal, on=key.object, by=EXTERNAL)
    return following(key, (await places(connection, [key.object]))[key.object].above)


async def shorten(connection: AsyncConnection, key: TupleKey, until: datetime) -> list[TupleKey]:
    """Let a grant end when OpenFGA says, where the rows let it last longer; the keys that follow from it, its own among
    them, none where they do not.

    Call it with the key locked.
    """
    if until <= await now(connection):
        return await disown(connection, key)
    await _hold_way(connection, key.object)
    privilege, principal = Privilege(key.relation), Principal(PrincipalType(key.subject.type), key.subject.id)
    if not await grants.shorten(
        connection, privilege=privilege, principal=principal, on=key.object, until=until, by=EXTERNAL
    ):
        return []
    return following(key, (await places(connection, [key.object]))[key.object].above)


async def _hold_way(connection: AsyncConnection, on: ObjectKey) -> None:
    lies = table_of(on) if on.type is ObjectType.COLUMN else on
    if lies.type in TABULARS:
        await tables.containers(connection, UUID(lies.id))


async def now(connection: AsyncConnection) -> datetime:
    """The database's time, which expiries are held against."""
    moment: datetime = (await connection.execute(select(func.clock_timestamp()))).scalar_one()
    return moment


# ---- the watch ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How far the change feed was read: the newest change seen, when it was made and in which store.

    `compare_all` is set until a full comparison is through, which the feed alone cannot replace.
    """

    store_id: str | None
    seen_until: datetime | None
    last_change: str | None
    compare_all: bool


# A power cut of the database's machine may take back a lease, or how far was read: then some of it is read again.
_NOT_WAITING_FOR_THE_DISK: Final = text("select set_config('synchronous_commit', 'off', true)")


async def take_watch(connection: AsyncConnection, holder: UUID, *, seconds: float) -> Watch | None:
    """Take or keep the watch for so long; None when another process has it."""
    await connection.execute(_NOT_WAITING_FOR_THE_DISK)
    await connection.execute(insert(drift_watch).values(singleton=True).on_conflict_do_nothing())
    free = or_(
        drift_watch.c.holder == holder,
        drift_watch.c.held_until.is_(None),
        drift_watch.c.held_until < func.clock_timestamp(),
    )
    until = func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, seconds)
    row = (
        await connection.execute(
            update(drift_watch).where(free).values(holder=holder, held_until=until).returning(drift_watch)
        )
    ).one_or_none()
    if row is None:
        return None
    return Watch(
        store_id=row.store_id, seen_until=row.seen_until, last_change=row.last_change, compare_all=row.compare_all
    )


async def keep_watch(connection: AsyncConnection, holder: UUID, watch: Watch) -> None:
    """Write down how far it is read, if the watch is still held by `holder`."""
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


async def leave_watch(connection: AsyncConnection, holder: UUID) -> None:
    """Give the watch up, so that another process need not wait for its end."""
    await connection.execute(update(drift_watch).where(drift_watch.c.holder == holder).values(held_until=None))


# ---- rows to keys ---------------------------------------------------------------------------------------------------


def _edge(row: AnyRow) -> TupleKey:
    """The edge from an object to its parent."""
    parent = ObjectKey(ObjectType(row.parent_type), str(row.parent_id))
    return TupleKey(parent, row.relation, ObjectKey(ObjectType(row.object_type), str(row.id)))


def _own(row: AnyRow) -> list[TupleKey]:
    """What an object's own row wants: the edge, and the flag where it is set."""
    edge = _edge(row)
    return [edge, *(managed_access.keys(edge.object) if row.managed_access else ())]


_EDGE_ROWS: Final = {
    Source.PROJECTS: """
        select p.id, 'project' as object_type, 'server' as relation, 'server' as parent_type, s.id as parent_id,
               false as managed_access
        from projects p cross join server s
        where (cast(:after as text) is null or p.id > :after) order by p.id limit :limit
    """,
    Source.WAREHOUSES: """
        select id, 'warehouse' as object_type, 'project' as relation, 'project' as parent_type, project_id as parent_id,
               managed_access
        from warehouses where (cast(:after as text) is null or id > cast(:after as uuid)) order by id limit :limit
    """,
    Source.ROLES: """
        select id, 'role' as object_type, 'project' as relation, 'project' as parent_type, project_id as parent_id,
               false as managed_access
        from roles where (cast(:after as text) is null or id > cast(:after as uuid)) order by id limit :limit
    """,
    Source.NAMESPACES: """
        select id, 'namespace' as object_type, 'parent' as relation,
               case when parent_id is null then 'warehouse' else 'namespace' end as parent_type,
               coalesce(parent_id, warehouse_id) as parent_id, managed_access
        from namespaces where (cast(:after as text) is null or id > cast(:after as uuid)) order by id limit :limit
    """,
    # A staged table is nobody's yet and has no tuples.
    Source.TABLES: """
        select id, kind as object_type, 'parent' as relation, 'namespace' as parent_type, namespace_id as parent_id,
               false as managed_access
        from tables where staged_by is null and (cast(:after as text) is null or id > cast(:after as uuid))
        order by id limit :limit
    """,
}

_STATEMENTS: Final = {
    **{source: text(statement) for source, statement in _EDGE_ROWS.items()},
    Source.GRANTS: text(
        f"select {columns_of(grants_table, 'g')} from grants g "  # noqa: S608 - composed of names of the schema
        "where (cast(:after as text) is null or g.id > cast(:after as uuid)) order by g.id limit :limit"
    ),
}

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
