# SPDX-License-Identifier: Apache-2.0
"""Statements on namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlalchemy import delete, exists, func, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.rows import AnyRow
from gateway.db.schema import namespaces, tables
from gateway.db.tables import drop_staged
from gateway.iceberg.identifiers import Namespace


class NamespaceGone(Exception):
    """The namespace was dropped since the request resolved it."""


async def create(
    connection: AsyncConnection,
    *,
    id: UUID,
    warehouse_id: UUID,
    parent_id: UUID | None,
    ancestors: Sequence[UUID],
    namespace: Namespace,
    properties: Mapping[str, str],
) -> bool:
    """Insert the namespace; False when its name is taken. The parent's row is locked, so it cannot go meanwhile.

    Raises NamespaceGone when the parent went since it was resolved.
    """
    if parent_id is not None:
        await hold(connection, parent_id)
    statement = (
        insert(namespaces)
        .values(
            id=id,
            warehouse_id=warehouse_id,
            parent_id=parent_id,
            ancestors=list(ancestors),
            levels=list(namespace.levels),
            path_key=namespace.key,
            properties=dict(properties),
        )
        .on_conflict_do_nothing(index_elements=["warehouse_id", "path_key"])
    )
    return (await connection.execute(statement)).rowcount == 1


async def hold(connection: AsyncConnection, id: UUID) -> None:
    """Keep the namespace from being dropped until this transaction ends. Raises NamespaceGone."""
    held = select(namespaces.c.id).where(namespaces.c.id == id).with_for_update(read=True, key_share=True)
    if (await connection.execute(held)).one_or_none() is None:
        raise NamespaceGone("the namespace does not exist any more")


async def any_exists(connection: AsyncConnection, ids: Sequence[UUID]) -> bool:
    """Whether any of these ids is a namespace's, of whatever warehouse."""
    return (await connection.execute(select(exists().where(namespaces.c.id.in_(ids))))).scalar_one() is True


async def drop_if_empty(connection: AsyncConnection, id: UUID) -> bool | None:
    """Delete the namespace. False when something is in it, None when it is already gone."""
    locked = select(namespaces.c.id).where(namespaces.c.id == id).with_for_update()
    if (await connection.execute(locked)).one_or_none() is None:
        return None
    inside = select(
        exists().where(namespaces.c.parent_id == id),
        exists().where(tables.c.namespace_id == id, tables.c.staged_by.is_(None)),
    )
    children, tabulars = (await connection.execute(inside)).one()
    if children or tabulars:
        return False
    await drop_staged(connection, namespace_id=id)
    await connection.execute(delete(namespaces).where(namespaces.c.id == id))
    return True


async def locked_properties(connection: AsyncConnection, id: UUID) -> dict[str, str] | None:
    """The current properties, locked for a change; None when the namespace is gone."""
    statement = select(namespaces.c.properties).where(namespaces.c.id == id).with_for_update()
    found: dict[str, str] | None = (await connection.execute(statement)).scalar_one_or_none()
    return found


async def set_properties(connection: AsyncConnection, id: UUID, properties: Mapping[str, str]) -> None:
    """Replace the properties."""
    await connection.execute(
        update(namespaces)
        .where(namespaces.c.id == id)
        .values(properties=dict(properties), updated_at=func.clock_timestamp())
    )


async def children(
    connection: AsyncConnection,
    *,
    warehouse_id: UUID,
    parent_id: UUID | None,
    after: tuple[str, UUID] | None,
    limit: int,
) -> Sequence[AnyRow]:
    """Direct children (id, levels, path_key) in the order of their folded names."""
    statement = select(namespaces.c.id, namespaces.c.levels, namespaces.c.path_key).where(
        namespaces.c.warehouse_id == warehouse_id,
        namespaces.c.parent_id.is_(None) if parent_id is None else namespaces.c.parent_id == parent_id,
    )
    if after is not None:
        statement = statement.where(tuple_(namespaces.c.path_key, namespaces.c.id) > tuple_(*after))
    statement = statement.order_by(namespaces.c.path_key, namespaces.c.id).limit(limit)
    return (await connection.execute(statement)).all()
