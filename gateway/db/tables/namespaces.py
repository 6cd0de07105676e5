# SPDX-License-Identifier: Apache-2.0
"""Statements on namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import ARRAY, ColumnElement, any_, bindparam, delete, exists, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.resolved import ResolvedNamespace
from gateway.db.engine.database import Database
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.rows import columns_for, fetch_all, fetch_one, fetch_optional
from gateway.db.schema.tables import LIVE, namespaces, tables
from gateway.db.tables.tables import drop_staged
from gateway.iceberg.identifiers import Namespace


class NamespaceGone(Exception):
    """The namespace was dropped or moved after the request resolved it."""

    def __init__(self, id: UUID) -> None:
        super().__init__("the namespace does not exist any more")
        self.id = id


class WarehouseGone(Exception):
    """The warehouse was deleted after the request resolved it. The transaction cannot continue."""


async def create(
    connection: AsyncConnection,
    *,
    id: UUID,
    warehouse_id: UUID,
    parent: ResolvedNamespace | None,
    namespace: Namespace,
    properties: Mapping[str, str],
) -> bool:
    """Insert the namespace. Return False if its name is taken.

    The parent's row is locked, so that the parent cannot be dropped meanwhile. The path begins with the parent's
    current spelling, because a rename that changes only letter case may have run since the parent was resolved. Raises
    NamespaceGone if the parent was dropped or moved after it was resolved, WarehouseGone if the warehouse was deleted.
    """
    if parent is not None:
        await lock_shared(connection, parent)
    statement = (
        insert(namespaces)
        .values(
            id=id,
            warehouse_id=warehouse_id,
            parent_id=None if parent is None else parent.id,
            ancestors=[] if parent is None else [*parent.ancestors, parent.id],
            levels=list(namespace.levels) if parent is None else _below(parent.id, namespace.levels[-1]),
            path_key=namespace.key,
            properties=dict(properties),
        )
        .on_conflict_do_nothing(index_elements=["warehouse_id", "path_key"])
    )
    try:
        return (await connection.execute(statement)).rowcount == 1
    except IntegrityError as error:
        if "warehouse_id_fkey" in str(error.orig):
            raise WarehouseGone(str(warehouse_id)) from error
        raise


def _below(parent_id: UUID, name: str) -> ColumnElement[list[str]]:
    above = select(namespaces.c.levels).where(namespaces.c.id == parent_id).scalar_subquery()
    return func.array_append(above, name, type_=namespaces.c.levels.type)


class LockedNamespace(NamedTuple):
    """The location of a namespace whose row is locked."""

    id: UUID
    path_key: str
    ancestors: list[UUID]


class TreeNamespace(NamedTuple):
    """A locked namespace in a tree that is dropped or moved."""

    id: UUID
    parent_id: UUID | None
    levels: list[str]
    ancestors: list[UUID]
    path_key: str
    protected: bool
    managed_access: bool


#: Namespaces of a tree, locked against every other change. A tree is locked level by level from the top down.
LOCKED: Final = select(*columns_for(TreeNamespace, namespaces)).order_by(namespaces.c.id).with_for_update()
#: The namespaces directly below the namespaces `parents`. The ids are one array, because PostgreSQL accepts at most
#: 32,767 parameters for a statement.
LOCKED_CHILDREN: Final = LOCKED.where(
    namespaces.c.parent_id == any_(bindparam("parents", type_=ARRAY(namespaces.c.id.type)))
)


class Obstacles(NamedTuple):
    """List the obstacles to the deletion of a namespace.

    It is `filled` if it contains something, and has `kept` objects if it contains dropped ones that can be restored.
    """

    protected: bool
    filled: bool
    kept: bool


async def lock_shared(connection: AsyncConnection, *at: ResolvedNamespace) -> None:
    """Lock namespaces until this transaction ends, so that neither they nor namespaces above them are dropped or moved.

    Every change whose tuples depend on the path of its object locks the object's namespace: moves lock all namespaces
    that they move (`namespace_move.py`). The locks are taken from the top down, in the order of moves. Raises
    NamespaceGone if a namespace is not where it was resolved.
    """
    by_id = {each.id: each for each in at}
    found = select(*columns_for(LockedNamespace, namespaces)).where(namespaces.c.id.in_(by_id))
    ordered = found.order_by(func.cardinality(namespaces.c.ancestors), namespaces.c.id)
    rows = await fetch_all(connection, LockedNamespace, ordered.with_for_update(read=True, key_share=True))
    still = {row.id for row in rows if is_still(row, by_id[row.id])}
    for id in by_id:
        if id not in still:
            raise NamespaceGone(id)


async def lock_if_unmoved(connection: AsyncConnection, at: ResolvedNamespace) -> bool:
    """Lock the namespace as `lock_shared` does. Return False if it is not where it was resolved."""
    try:
        await lock_shared(connection, at)
    except NamespaceGone:
        return False
    return True


def is_still(row: LockedNamespace | TreeNamespace, resolved: ResolvedNamespace) -> bool:
    return row.path_key == resolved.namespace.key and tuple(row.ancestors) == resolved.ancestors


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespacePlace:
    """The location of a namespace, by ids: its warehouse and the namespaces above it, the outermost first."""

    id: UUID
    warehouse_id: UUID
    ancestors: tuple[UUID, ...]


async def places(connection: AsyncConnection, ids: Sequence[UUID]) -> dict[UUID, NamespacePlace]:
    """Return the locations of those ids that belong to namespaces, in any warehouse."""
    columns = (namespaces.c.id, namespaces.c.warehouse_id, namespaces.c.ancestors)
    rows = await connection.execute(select(*columns).where(namespaces.c.id.in_(ids)))
    return {
        row.id: NamespacePlace(id=row.id, warehouse_id=row.warehouse_id, ancestors=tuple(row.ancestors)) for row in rows
    }


async def lock_and_find_obstacle(connection: AsyncConnection, at: ResolvedNamespace) -> Obstacles | None:
    """Lock the namespace and return what prevents its deletion. Return None if it was dropped or moved."""
    id = at.id
    to_lock = select(*columns_for(LockedNamespace, namespaces)).where(namespaces.c.id == id).with_for_update()
    row = await fetch_optional(connection, LockedNamespace, to_lock)
    if row is None or not is_still(row, at):
        return None
    child = exists().where(namespaces.c.parent_id == id)
    inside = select(
        select(namespaces.c.protected).where(namespaces.c.id == id).scalar_subquery().label("protected"),
        or_(child, exists().where(tables.c.namespace_id == id, LIVE)).label("filled"),
        exists().where(tables.c.namespace_id == id, tables.c.deleted_at.is_not(None)).label("kept"),
    )
    return await fetch_one(connection, Obstacles, inside)


async def drop_empty(connection: AsyncConnection, id: UUID) -> None:
    """Delete a namespace that contains nothing but staged tables, and delete these tables.

    Call `lock_and_find_obstacle` first.
    """
    await drop_staged(connection, namespace_id=id)
    await connection.execute(delete(namespaces).where(namespaces.c.id == id))


async def read_properties(database: Database, id: UUID) -> dict[str, str] | None:
    """Return the current properties, None if the namespace was dropped. Raises DatabaseUnavailable."""
    found: dict[str, str] | None = (await database.read_one(_PROPERTIES, {"id": id})).properties
    return found


_ONE = select(literal(1).label("one")).subquery("one")

#: The statement always returns one row. The row contains nulls if the namespace was dropped.
_PROPERTIES = DirectRead(
    select(namespaces.c.properties).select_from(
        _ONE.outerjoin(namespaces, namespaces.c.id == bindparam("id", type_=namespaces.c.id.type))
    )
)


async def locked_properties(connection: AsyncConnection, id: UUID) -> dict[str, str] | None:
    """Return the current properties and lock them for a change. Return None if the namespace was dropped."""
    statement = select(namespaces.c.properties).where(namespaces.c.id == id).with_for_update()
    found: dict[str, str] | None = (await connection.execute(statement)).scalar_one_or_none()
    return found


async def set_properties(connection: AsyncConnection, id: UUID, properties: Mapping[str, str]) -> None:
    """Replace all properties of the namespace."""
    await connection.execute(
        update(namespaces)
        .where(namespaces.c.id == id)
        .values(properties=dict(properties), updated_at=func.clock_timestamp())
    )
