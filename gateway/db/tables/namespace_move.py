# SPDX-License-Identifier: Apache-2.0
"""Statements that move or rename a namespace with its contents.

A move changes the path of everything below the namespace in one transaction. So it locks each namespace that it moves.
Each concurrent create, drop, rename or grant locks the namespace of its object (`namespaces.lock_shared`,
`tables.containers`). So these changes end before the move reads the contents, or begin after the move. A warehouse has
one move at a time, so that two moves cannot form a cycle or deadlock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.events.change_event import MAX_CONTENTS, FurtherChanges, MovedObject
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.resolved import ResolvedNamespace
from gateway.db.pools.rows import fetch_all, fetch_optional
from gateway.db.schema.tables import namespaces
from gateway.db.tables import namespaces as spaces
from gateway.db.tables.tables import clashes
from gateway.db.tuples import outbox
from gateway.db.tuples.desired_tuples import path_above
from gateway.db.tuples.ownership import Steps, record_moved
from gateway.iceberg.identifiers import Namespace


@dataclass(frozen=True, slots=True)
class Subtree:
    """A namespace and all namespaces below it, locked until the transaction ends.

    `depth` is the number of levels of its deepest path. `parent` is the new parent, None for the top level.
    """

    id: UUID
    warehouse_id: UUID
    levels: tuple[str, ...]
    path_key: str
    ancestors: tuple[UUID, ...]
    protected: bool
    ids: tuple[UUID, ...]
    depth: int
    parent: ResolvedNamespace | None

    @property
    def into_itself(self) -> bool:
        """Return True if the new parent is the namespace itself or is inside of it."""
        return self.parent is not None and self.id in (*self.parent.ancestors, self.parent.id)

    @property
    def reparented(self) -> bool:
        """Return True if the new parent differs from the current one."""
        before = self.ancestors[-1] if self.ancestors else None
        return before != (None if self.parent is None else self.parent.id)


async def lock_subtrees(connection: AsyncConnection, warehouse_id: UUID) -> None:
    """Run transactions that lock whole trees of a warehouse's namespaces one at a time: moves and recursive drops."""
    await connection.execute(
        select(func.pg_advisory_xact_lock(func.hashtextextended(f"namespace moves\x1f{warehouse_id}", 7)))
    )


async def lock(
    connection: AsyncConnection, at: ResolvedNamespace, *, parent: ResolvedNamespace | None
) -> Subtree | None:
    """Lock the namespaces that a move changes, and the new parent.

    Return None if the namespace is not where it was resolved, because the caller may have other rights in the new
    place. It locks level by level from the top down, because no row can be added to a level whose parents are locked.
    Raises NamespaceGone if the parent is not where it was resolved.
    """
    id, warehouse_id = at.id, at.warehouse.id
    await lock_subtrees(connection, warehouse_id)
    if parent is not None:
        await spaces.lock_shared(connection, parent)
    found = spaces.LOCKED.where(namespaces.c.id == id, namespaces.c.warehouse_id == warehouse_id)
    row = await fetch_optional(connection, spaces.TreeNamespace, found)
    if row is None or not spaces.is_still(row, at):
        return None
    into_itself = parent is not None and id in (*parent.ancestors, parent.id)
    ids, depth = ([id], len(row.levels)) if into_itself else await _lock_below(connection, row)
    return Subtree(
        id=id,
        warehouse_id=warehouse_id,
        levels=tuple(row.levels),
        path_key=row.path_key,
        ancestors=tuple(row.ancestors),
        protected=row.protected,
        ids=tuple(ids),
        depth=depth,
        parent=parent,
    )


async def _lock_below(connection: AsyncConnection, top: spaces.TreeNamespace) -> tuple[list[UUID], int]:
    """Lock the namespaces below `top`.

    Return (the ids of the namespace and of all below it, the number of levels of the deepest path).
    """
    ids: list[UUID] = [top.id]
    level: Sequence[UUID] = [top.id]
    depth = len(top.levels)
    while True:
        below = await fetch_all(connection, spaces.TreeNamespace, spaces.LOCKED_CHILDREN, {"parents": list(level)})
        level = [row.id for row in below]
        if not level:
            return ids, depth
        ids += level
        depth += 1


async def contents(connection: AsyncConnection, subtree: Subtree, *, to: Namespace) -> FurtherChanges:
    """Return the objects whose full names a move changes, for their events. Call it before `move`.

    Staged and dropped tables are left out, because clients do not see them.
    """
    ids = list(subtree.ids)
    count = (await connection.execute(_COUNT_CONTENTS, {"ids": ids})).scalar_one()
    if count > MAX_CONTENTS:
        return FurtherChanges(left_out=count)
    return FurtherChanges(
        [
            MovedObject(row.kind, str(row.id), levels, (*to.levels, *levels[len(subtree.levels) :]), row.name)
            for row in await connection.execute(_CONTENTS, {"ids": ids, "top": subtree.id})
            for levels in [tuple(row.levels)]
        ]
    )


_COUNT_CONTENTS = text(
    """
    select cardinality(cast(:ids as uuid[])) - 1 + count(*) from tables
    where namespace_id = any(cast(:ids as uuid[])) and staged_by is null and deleted_at is null
    """
)
_CONTENTS = text(
    """
    select 'namespace' as kind, id, levels, '' as name from namespaces
    where id = any(cast(:ids as uuid[])) and id <> cast(:top as uuid)
    union all
    select t.kind, t.id, n.levels, t.name from tables t join namespaces n on n.id = t.namespace_id
    where t.namespace_id = any(cast(:ids as uuid[])) and t.staged_by is null and t.deleted_at is null
    """
)


async def move(connection: AsyncConnection, subtree: Subtree, *, project_id: str, to: Namespace) -> Steps:
    """Set the new parent and name of the locked namespace, and the paths of all below it, in one statement.

    `to` is the whole new path. Return the tuple keys to deliver. If the parent stays the same, they are the keys that
    an earlier move left in the outbox. Raises Clash if the name is taken.
    """
    parent = subtree.parent
    above = () if parent is None else (*parent.ancestors, parent.id)
    values = {
        "id": subtree.id,
        "ids": list(subtree.ids),
        "parent": None if parent is None else parent.id,
        "above": list(above),
        "name": to.levels[-1],
        "key": to.key,
        "depth": len(subtree.levels),
        "key_length": len(subtree.path_key),
    }
    with clashes():
        await connection.execute(_MOVE, values)
    moved = ObjectKey(ObjectType.NAMESPACE, str(subtree.id))
    if not subtree.reparented:
        return await outbox.pending_of_moves(connection, moved)
    warehouse = str(subtree.warehouse_id)
    before = path_above(project_id, warehouse, [str(id) for id in subtree.ancestors])
    after = path_above(project_id, warehouse, [str(id) for id in above])
    return await record_moved(
        connection,
        moved,
        before[-1],
        after[-1],
        above_before=before,
        above_after=after,
        warehouse_id=subtree.warehouse_id,
    )


# The row of a moved namespace keeps the end of its path: the levels after the first `depth`, the ancestors from the
# moved namespace on, and the folded path after that of the moved namespace. The new path begins with the current
# spelling of the new parent.
_MOVE = text(
    """
    update namespaces set
        parent_id = case when id = :id then cast(:parent as uuid) else parent_id end,
        ancestors = cast(:above as uuid[]) || ancestors[cast(:depth as int):],
        levels = coalesce((select above.levels from namespaces above where above.id = cast(:parent as uuid)), '{}')
            || cast(:name as text) || levels[cast(:depth as int) + 1:],
        path_key = cast(:key as text) || substr(path_key, cast(:key_length as int) + 1),
        updated_at = clock_timestamp()
    where id = any(cast(:ids as uuid[]))
    """
)
