# SPDX-License-Identifier: Apache-2.0
"""Drop a namespace with its contents in one transaction, using few statements.

Every namespace of the tree is locked before its contents are read. Each concurrent create, drop, rename or restore
locks the namespace of its object. So such a change either ended before and its result is found, or it starts later and
finds that its namespace is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import ARRAY, Column, ColumnElement, any_, cast, delete, func, text, update
from sqlalchemy.dialects.postgresql import UUID as PostgresUUID
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.access.nouns.refs import ObjectKey, ObjectType, table_of
from gateway.access.nouns.resolved import ResolvedNamespace
from gateway.access.tuples import TupleKey
from gateway.db.grants import grant_ends, grants
from gateway.db.pools.rows import fetch_all, fetch_optional
from gateway.db.schema.tables import namespaces, retired_locations, tables
from gateway.db.schema.tasks import tasks
from gateway.db.tables import namespace_move, pending_files
from gateway.db.tables import namespaces as spaces
from gateway.db.tables.namespaces import TreeNamespace
from gateway.db.tasks.tasks import ACTIVE, Files, PurgedLocation, Queue, Status
from gateway.db.tuples import managed_access, outbox
from gateway.db.tuples.desired_tuples import following, path_above
from gateway.db.tuples.outbox import Pending


class Tabular(NamedTuple):
    """A table, view or generic table of a tree. `gc_enabled` is the property `gc.enabled`.

    `adopted` is True for a generic table at whose creation its files existed already.
    """

    id: UUID
    kind: str
    name: str
    namespace_id: UUID
    protected: bool
    staged_by: str | None
    deleted_at: datetime | None
    location: str
    location_key: str
    gc_enabled: str | None
    adopted: bool


class _Drop(NamedTuple):
    """Hold the disposal of the files that an earlier drop requested, and the last metadata file."""

    entity_id: UUID
    files: str | None
    last_file: str | None


@dataclass(frozen=True, slots=True)
class Tree:
    """A namespace and its contents, locked until the transaction ends.

    `namespaces` start with the top. `tabulars` include staged and dropped ones.
    """

    top: ResolvedNamespace
    namespaces: Sequence[TreeNamespace]
    tabulars: Sequence[Tabular]


# PostgreSQL accepts at most 32,767 parameters for a statement.
_FILES_AT_ONCE = 1000


# The document is parsed only if it may contain the property `gc.enabled`, and it is never sent to the gateway: a tree
# may contain many large documents. The document of a generic table also states if its files existed before
# (`gateway.iceberg.generic_tables`).
_TABULARS = text(
    """
    select id, kind, name, namespace_id, protected, staged_by, deleted_at, location, location_key,
        case when position(convert_to('gc.enabled', 'UTF8') in metadata) > 0
            then convert_from(metadata, 'UTF8')::json #>> '{properties,gc.enabled}' end as gc_enabled,
        kind = 'generic_table' and metadata is not null
            and coalesce((convert_from(metadata, 'UTF8')::json ->> 'adopted')::boolean, false) as adopted
    from tables where namespace_id = any(cast(:namespaces as uuid[])) order by id for update
    """
)


async def lock(connection: AsyncConnection, at: ResolvedNamespace) -> Tree | None:
    """Lock the namespace and its contents. Return None if the namespace was deleted or moved."""
    await namespace_move.lock_subtrees(connection, at.warehouse.id)
    top = await fetch_optional(connection, TreeNamespace, spaces.LOCKED.where(namespaces.c.id == at.id))
    if top is None or not spaces.is_still(top, at):
        return None
    found, level = [top], [top]
    while level:
        # The parents are locked, so no row can be added to the level below them.
        parents = {"parents": [row.id for row in level]}
        level = await fetch_all(connection, TreeNamespace, spaces.LOCKED_CHILDREN, parents)
        found += level
    inside = await fetch_all(connection, Tabular, _TABULARS, {"namespaces": [row.id for row in found]})
    return Tree(at, found, inside)


async def remove(connection: AsyncConnection, tree: Tree, *, purged: Sequence[Tabular], by: str) -> list[Pending]:
    """Delete the tree, schedule the deletion of the files of `purged`, and enqueue the deletion of its tuples.

    If an earlier drop of an object requested the deletion of its files, this is scheduled too. Otherwise the last
    metadata file of the object is recorded as pending, so that it is deleted.
    """
    ids = [row.id for row in tree.tabulars]
    cancelled = await _cancel_tasks(connection, ids)
    to_purge = {row.id for row in purged} | {row.entity_id for row in cancelled if row.files == Files.PURGE}
    await _schedule_purges(connection, tree, [row for row in tree.tabulars if row.id in to_purge])
    last = [row.last_file for row in cancelled if row.last_file is not None and row.entity_id not in to_purge]
    for start in range(0, len(last), _FILES_AT_ONCE):
        await pending_files.add(connection, tree.top.warehouse.id, last[start : start + _FILES_AT_ONCE])
    if ids:
        await connection.execute(delete(tables).where(_among(tables.c.id, ids)))
        await connection.execute(
            update(retired_locations)
            .where(_among(retired_locations.c.table_id, ids), retired_locations.c.retired_by.is_(None))
            .values(retired_by=by)
        )
    spaces_gone = [row.id for row in tree.namespaces]
    await connection.execute(delete(namespaces).where(_among(namespaces.c.id, spaces_gone)))
    return await _enqueue(connection, tree, by)


def _among(column: Column[Any], ids: Sequence[UUID]) -> ColumnElement[bool]:
    """Return the condition that the column has one of the ids.

    They are one parameter, because a statement has at most 32,767.
    """
    return column == any_(cast(list(ids), ARRAY(PostgresUUID(as_uuid=True))))


async def _cancel_tasks(connection: AsyncConnection, ids: Sequence[UUID]) -> Sequence[_Drop]:
    """Cancel the tasks that would delete these rows.

    Return what their drops requested (entity_id, files, last_file).
    """
    statement = (
        update(tasks)
        .where(
            tasks.c.queue.in_([Queue.SOFT_DELETION.value, Queue.EXPIRE_STAGED_TABLE.value]),
            _among(tasks.c.entity_id, ids),
            tasks.c.status.in_(ACTIVE),
        )
        .values(
            status=Status.CANCELLED.value,
            finished_at=func.clock_timestamp(),
            updated_at=func.clock_timestamp(),
            last_error="dropped with its namespace",
        )
        .returning(
            tasks.c.entity_id,
            tasks.c.payload["files"].astext.label("files"),
            tasks.c.payload["last_file"].astext.label("last_file"),
        )
    )
    return await fetch_all(connection, _Drop, statement)


async def _schedule_purges(connection: AsyncConnection, tree: Tree, rows: Sequence[Tabular]) -> None:
    if not rows:
        return
    levels: Mapping[UUID, Sequence[str]] = {row.id: row.levels for row in tree.namespaces}
    shared = {"queue": Queue.TABULAR_PURGE.value, "warehouse_id": tree.top.warehouse.id}
    await connection.execute(
        insert(tasks).on_conflict_do_nothing(),
        [
            {
                **shared,
                "id": uuid7(),
                "entity_type": row.kind,
                "entity_id": row.id,
                "entity_name": [*levels[row.namespace_id], row.name],
                "payload": msgspec.to_builtins(PurgedLocation(row.location, row.location_key)),
            }
            for row in rows
        ],
    )


async def _enqueue(connection: AsyncConnection, tree: Tree, by: str) -> list[Pending]:
    warehouse = tree.top.warehouse
    above: dict[ObjectKey, list[ObjectKey]] = {}
    keys: dict[TupleKey, None] = {}
    within: dict[UUID, list[ObjectKey]] = {}
    for row in tree.namespaces:
        key = ObjectKey(ObjectType.NAMESPACE, str(row.id))
        above[key] = path_above(warehouse.project_id, str(warehouse.id), [str(id) for id in row.ancestors])
        within[row.id] = [*above[key], key]
        keys[TupleKey(above[key][-1], "parent", key)] = None
        if row.managed_access:
            keys.update(dict.fromkeys(managed_access.keys(key)))
    for inside in tree.tabulars:
        if inside.staged_by is None:
            key = ObjectKey(ObjectType(inside.kind), str(inside.id))
            above[key] = within[inside.namespace_id]
            keys[TupleKey(above[key][-1], "parent", key)] = None
    for ended in await grant_ends.sweep(connection, list(above), by=by):
        granted = grants.tuple_of(ended)
        on = table_of(granted.object) if granted.object.type is ObjectType.COLUMN else granted.object
        keys.update(dict.fromkeys(following(granted, above[on])))
    # The keys above the tree come first, because they may make something visible. No decision finds the tree any more.
    first = sorted(keys, key=lambda key: key.object in above)
    return await outbox.enqueue(connection, first, takes_away=True, warehouse_id=warehouse.id)
