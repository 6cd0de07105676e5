# SPDX-License-Identifier: Apache-2.0
"""Statements that move a namespace, with all that lies in it, to another parent or another name.

A move changes where everything below lies, in one transaction. So it locks each namespace it takes along: whoever
creates, drops, renames or grants something there holds the namespace it lies in (`namespaces.hold`,
`tables.containers`), and is over before the move reads what is there, or begins after it. There is one move at a time
in a warehouse, which is why two of them cannot make a circle or wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.resolved import ResolvedNamespace
from gateway.db import namespaces as spaces
from gateway.db import outbox
from gateway.db.desired_tuples import path_above
from gateway.db.ownership import Steps, record_moved
from gateway.db.rows import AnyRow
from gateway.db.schema.namespaces import namespaces
from gateway.db.tables import clashes
from gateway.iceberg.identifiers import Namespace


@dataclass(frozen=True, slots=True)
class Subtree:
    """A namespace and all below it, locked until the transaction ends.

    `depth` is how many levels its deepest path has; `parent` what the namespace is to lie in, None for the top level.
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
        """Whether the new parent is the namespace itself, or lies in it."""
        return self.parent is not None and self.id in (*self.parent.ancestors, self.parent.id)

    @property
    def reparented(self) -> bool:
        """Whether it is to lie in something else than now."""
        before = self.ancestors[-1] if self.ancestors else None
        return before != (None if self.parent is None else self.parent.id)


async def in_turn(connection: AsyncConnection, warehouse_id: UUID) -> None:
    """Let one transaction at a time lock whole trees of a warehouse's namespaces: a move, or a drop of all below."""
    await connection.execute(
        select(func.pg_advisory_xact_lock(func.hashtextextended(f"namespace moves\x1f{warehouse_id}", 7)))
    )


async def lock(
    connection: AsyncConnection, at: ResolvedNamespace, *, parent: ResolvedNamespace | None
) -> Subtree | None:
    """Lock what a move takes along, and hold where it goes; None when the namespace is not where it was resolved: who
    may take it from there may perhaps not take it from where it is now.

    From the top down, one statement for each level: nothing comes into a level whose parents are locked. Raises
    NamespaceGone when the parent is not where it was resolved.
    """
    id, warehouse_id = at.id, at.warehouse.id
    await in_turn(connection, warehouse_id)
    if parent is not None:
        await spaces.hold(connection, parent)
    found = select(namespaces).where(namespaces.c.id == id, namespaces.c.warehouse_id == warehouse_id)
    row = (await connection.execute(found.with_for_update())).one_or_none()
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


async def _lock_below(connection: AsyncConnection, top: AnyRow) -> tuple[list[UUID], int]:
    """(the ids of the namespace and all below it, how many levels the deepest has)."""
    ids: list[UUID] = [top.id]
    level: Sequence[UUID] = [top.id]
    depth = len(top.levels)
    while True:
        level = [row.id for row in await connection.execute(_CHILDREN, {"parents": list(level)})]
        if not level:
            return ids, depth
        ids += level
        depth += 1


_CHILDREN = text(
    "select id from namespaces where parent_id = any(cast(:parents as uuid[])) order by cardinality(ancestors), id "
    "for update"
)


async def move(connection: AsyncConnection, subtree: Subtree, *, project_id: str, to: Namespace) -> Steps:
    """Give the locked namespace its new parent and name, and all below it their new paths, in one statement; the
    tuples to be delivered: when it stays in its parent, those that an earlier move left.

    `to` is the whole new path. Raises Clash when its name is taken.
    """
    parent = subtree.parent
    above = () if parent is None else (*parent.ancestors, parent.id)
    values = {
        "id": subtree.id,
        "ids": list(subtree.ids),
        "parent": None if parent is None else parent.id,
        "above": list(above),
        "levels": list(to.levels),
        "key": to.key,
        "depth": len(subtree.levels),
        "key_length": len(subtree.path_key),
    }
    with clashes():
        await connection.execute(_MOVE, values)
    moved = ObjectKey(ObjectType.NAMESPACE, str(subtree.id))
    if not subtree.reparented:
        return await outbox.left_of_moves(connection, moved)
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


# What lies `depth` levels deep or deeper keeps the end of its path: its levels from there on, its ancestors from the
# moved namespace on, and its folded path behind that of the moved one.
_MOVE = text(
    """
    update namespaces set
        parent_id = case when id = :id then cast(:parent as uuid) else parent_id end,
        ancestors = cast(:above as uuid[]) || ancestors[cast(:depth as int):],
        levels = cast(:levels as text[]) || levels[cast(:depth as int) + 1:],
        path_key = cast(:key as text) || substr(path_key, cast(:key_length as int) + 1),
        updated_at = clock_timestamp()
    where id = any(cast(:ids as uuid[]))
    """
)
