# SPDX-License-Identifier: Apache-2.0
"""Statements on drop protection of tables and views, and on dropped tables and views that can be restored.

A protected table or view can be dropped only with `force`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import delete, func, select, text, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.door.list_visibility import Holders
from gateway.access.nouns.refs import TABULARS, ObjectKey, ObjectType
from gateway.db.engine.list_candidates import SPOKEN_FOR
from gateway.db.pools.rows import columns_for, fetch_all, fetch_optional
from gateway.db.schema.tables import LIVE, namespaces, tables
from gateway.db.tables import pending_files, retired_locations
from gateway.db.tables.tables import clashes, schedule_purge
from gateway.db.tasks.tasks import ACTIVE, FileDisposal, Files, Queue, cancel_all

_TABLES = {ObjectType.NAMESPACE: namespaces, **dict.fromkeys(TABULARS, tables)}


class Protection(NamedTuple):
    """State if an object is protected, and when this was last changed."""

    protected: bool
    updated_at: datetime | None


async def of(connection: AsyncConnection, on: ObjectKey) -> Protection | None:
    """Return the protection of an object. Return None if the object does not exist."""
    table = _TABLES[on.type]
    statement = select(table.c.protected, table.c.updated_at).where(table.c.id == UUID(on.id))
    if table is tables:
        statement = statement.where(LIVE)
    return await fetch_optional(connection, Protection, statement)


async def protect(connection: AsyncConnection, on: ObjectKey, protected: bool) -> Protection | None:
    """Set the protection of an object, and return it. Return None if the object does not exist."""
    table = _TABLES[on.type]
    statement = (
        update(table)
        .where(table.c.id == UUID(on.id))
        .values(protected=protected, updated_at=func.clock_timestamp())
        .returning(table.c.protected, table.c.updated_at)
    )
    if table is tables:
        statement = statement.where(LIVE)
    return await fetch_optional(connection, Protection, statement)


class KeptRow(NamedTuple):
    """A live or dropped table or view. It is dropped if `deleted_at` is not None."""

    id: UUID
    kind: str
    location: str
    location_key: str
    metadata_location: str | None
    deleted_at: datetime | None


class DroppedRow(NamedTuple):
    """A dropped table or view, with the levels of its namespace.

    `name_key` determines its position in lists. `expires_at` is None if no task deletes it.
    """

    id: UUID
    kind: str
    name: str
    name_key: str
    levels: Sequence[str]
    created_at: datetime
    deleted_at: datetime
    expires_at: datetime | None


class TakenName(NamedTuple):
    """A dropped table or view, and the kind of the object that now has its name."""

    id: UUID
    kind: str
    name: str
    taken_by: str


async def mark(connection: AsyncConnection, id: UUID, *, by: str) -> None:
    """Mark a table or view as dropped. Its row must be locked. The version increases, so a concurrent commit fails."""
    await connection.execute(
        update(tables)
        .where(tables.c.id == id)
        .values(deleted_at=func.clock_timestamp(), deleted_by=by, version=tables.c.version + 1)
    )
    await retired_locations.retired_by(connection, id, by)


async def lock_rows(connection: AsyncConnection, ids: Sequence[UUID]) -> Sequence[KeptRow]:
    """Lock the rows of tables and views, dropped or not, in a fixed order, and return them.

    Lock their namespaces first (`namespaces.lock_shared`).
    """
    statement = (
        select(*columns_for(KeptRow, tables))
        .where(tables.c.id.in_(list(ids)), tables.c.staged_by.is_(None))
        .order_by(tables.c.id)
        .with_for_update()
    )
    return await fetch_all(connection, KeptRow, statement)


async def lock_for_deletion(connection: AsyncConnection, id: UUID) -> KeptRow | None:
    """Lock and return the row of a dropped table or view that is to be deleted, as `lock_rows` does.

    Its namespace is locked first. Return None if the object was restored or deleted.
    """
    above = (
        select(namespaces.c.id)
        .join_from(namespaces, tables, tables.c.namespace_id == namespaces.c.id)
        .where(tables.c.id == id)
        .with_for_update(read=True, key_share=True, of=namespaces)
    )
    await connection.execute(above)
    return next((row for row in await lock_rows(connection, [id]) if row.deleted_at is not None), None)


async def restore(connection: AsyncConnection, ids: Sequence[UUID]) -> None:
    """Restore dropped tables and views, and cancel their deletion. Their rows must be locked.

    Raises Clash if a name is taken.
    """
    values = {"deleted_at": None, "deleted_by": None, "version": tables.c.version + 1}
    with clashes():
        await connection.execute(update(tables).where(tables.c.id.in_(list(ids))).values(values))
    await cancel_end(connection, ids, reason="brought back")


async def remove(connection: AsyncConnection, ids: Sequence[UUID]) -> None:
    """Delete the rows of these tables and views. They must be locked."""
    await connection.execute(delete(tables).where(tables.c.id.in_(list(ids))))


async def cancel_end(connection: AsyncConnection, ids: Sequence[UUID], *, reason: str) -> None:
    """Cancel the tasks that would delete these rows. A running task notices it before it commits."""
    await cancel_all(connection, Queue.SOFT_DELETION, list(ids), reason=reason, even_running=True)


async def dispose_files(
    connection: AsyncConnection,
    id: UUID,
    then: FileDisposal,
    *,
    kind: ObjectType,
    warehouse_id: UUID,
    location: str,
    location_key: str,
    parent: UUID | None = None,
    purge_in_seconds: float = 0.0,
) -> None:
    """Delete or keep the files of a deleted row, as the drop requested in `then`.

    A purge begins after `purge_in_seconds`. `parent` is the task that deletes the row.
    """
    if then.files is Files.PURGE:
        await schedule_purge(
            connection,
            id,
            warehouse_id=warehouse_id,
            location=location,
            location_key=location_key,
            kind=kind.value,
            parent=parent,
            in_seconds=purge_in_seconds,
        )
    elif then.last_file is not None:
        await pending_files.add(connection, warehouse_id, [then.last_file])


_DELETED = """
    select t.id, t.kind, t.name, t.name_key, n.levels, t.created_at, t.deleted_at, k.scheduled_for as expires_at
    from tables t
    join namespaces n on n.id = t.namespace_id
    left join tasks k on k.queue = :queue and k.entity_type = t.kind and k.entity_id = t.id
        and k.status = any(:active)
    where t.warehouse_id = :warehouse_id and t.deleted_at is not null
        and (cast(:namespace_id as uuid) is null or t.namespace_id = cast(:namespace_id as uuid))
        and (cast(:after_key as text) is null
             or (t.name_key, t.id) > (cast(:after_key as text), cast(:after_id as uuid)))
"""

_ORDER = " order by t.name_key, t.id limit :limit"

_EVERY = text(_DELETED + _ORDER)
_THEIRS = text(f"{_DELETED} and {SPOKEN_FOR} {_ORDER}")


async def dropped(
    connection: AsyncConnection,
    *,
    warehouse_id: UUID,
    namespace_id: UUID | None,
    holders: Holders | None,
    after: tuple[str, UUID] | None,
    limit: int,
) -> Sequence[DroppedRow]:
    """Return the dropped tables and views of a warehouse that can be restored, ordered by folded name.

    With `holders`, only rows are returned that a grant to one of them may make visible: a grant on the object or on a
    namespace above it.
    """
    key, id = after or (None, None)
    ends = {"active": list(ACTIVE), "queue": Queue.SOFT_DELETION.value}
    values = {**ends, "warehouse_id": warehouse_id, "namespace_id": namespace_id}
    page = {"after_key": key, "after_id": id, "limit": limit}
    if holders is None:
        return await fetch_all(connection, DroppedRow, _EVERY, {**values, **page})
    own = {"user": holders.user, "roles": list(holders.roles)}
    return await fetch_all(connection, DroppedRow, _THEIRS, {**values, **page, **own})


async def taken_names(connection: AsyncConnection, ids: Sequence[UUID]) -> Sequence[TakenName]:
    """Return the dropped rows, of these, whose name another object now has."""
    other = tables.alias("other")
    statement = (
        select(tables.c.id, tables.c.kind, tables.c.name, other.c.kind.label("taken_by"))
        .join(
            other,
            tuple_(other.c.namespace_id, other.c.name_key) == tuple_(tables.c.namespace_id, tables.c.name_key),
        )
        .where(
            tables.c.id.in_(list(ids)),
            tables.c.deleted_at.is_not(None),
            other.c.deleted_at.is_(None),
            other.c.staged_by.is_(None),
        )
    )
    return await fetch_all(connection, TakenName, statement)
