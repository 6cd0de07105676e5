# SPDX-License-Identifier: Apache-2.0
"""Statements on grants: the rows that OpenFGA's tuples are made from."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import and_, delete, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.access.privileges import Privilege
from gateway.access.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal
from gateway.db.rows import AnyRow
from gateway.db.schema import grants, namespaces, projects, roles, server, tables, warehouses

_TABLES = {
    ObjectType.SERVER: server,
    ObjectType.PROJECT: projects,
    ObjectType.WAREHOUSE: warehouses,
    ObjectType.NAMESPACE: namespaces,
    ObjectType.TABLE: tables,
    ObjectType.VIEW: tables,
    ObjectType.ROLE: roles,
}


async def give(
    connection: AsyncConnection, *, privilege: Privilege, principal: Principal, on: ObjectKey, by: str
) -> bool:
    """Record a grant; False when it was there already."""
    statement = (
        insert(grants)
        .values(
            id=uuid7(),
            privilege=privilege.value,
            principal_type=principal.type.value,
            principal_id=principal.id,
            object_type=on.type.value,
            object_id=on.id,
            granted_by=by,
        )
        .on_conflict_do_nothing()
    )
    return (await connection.execute(statement)).rowcount == 1


async def hold_object(connection: AsyncConnection, on: ObjectKey) -> bool:
    """Keep an object from being dropped until this transaction ends; False when it is gone already.

    Without it a grant could be recorded on something that a concurrent drop has just swept the grants of.
    """
    table = _TABLES[on.type]
    id = on.id if table is projects else UUID(on.id)
    held = select(table.c.id).where(table.c.id == id).with_for_update(read=True, key_share=True)
    return (await connection.execute(held)).one_or_none() is not None


async def take(connection: AsyncConnection, *, privilege: Privilege, principal: Principal, on: ObjectKey) -> bool:
    """Remove a grant; False when there was none."""
    statement = delete(grants).where(
        grants.c.privilege == privilege.value,
        grants.c.principal_type == principal.type.value,
        grants.c.principal_id == principal.id,
        grants.c.object_type == on.type.value,
        grants.c.object_id == on.id,
    )
    return (await connection.execute(statement)).rowcount == 1


async def on_object(connection: AsyncConnection, on: ObjectKey) -> Sequence[AnyRow]:
    """The grants on one object, oldest first."""
    statement = select(grants).where(grants.c.object_type == on.type.value, grants.c.object_id == on.id)
    return (await connection.execute(statement.order_by(grants.c.id))).all()


async def sweep(connection: AsyncConnection, objects: Sequence[ObjectKey]) -> Sequence[AnyRow]:
    """Remove all grants on objects that go, and tell what they were."""
    on_any = or_(*(and_(grants.c.object_type == key.type.value, grants.c.object_id == key.id) for key in objects))
    return (await connection.execute(delete(grants).where(on_any).returning(grants))).all()
