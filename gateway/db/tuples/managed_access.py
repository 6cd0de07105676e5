# SPDX-License-Identifier: Apache-2.0
"""Managed access: a flag on warehouses and namespaces, and the two tuples that it requires.

The flag removes the right to grant from the owners of objects below. It is one tuple for all users and one for all
roles, because the wildcard of users does not match roles (`fga_model/namespace.fga`). Removing the flag restores the
right.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import ALL_USERS, MANAGED_ACCESS, Principal, PrincipalType, TupleKey
from gateway.db.schema.tables import namespaces
from gateway.db.schema.warehouses import warehouses

_TABLES = {ObjectType.WAREHOUSE: warehouses, ObjectType.NAMESPACE: namespaces}


#: Types of objects that can have the flag `managed_access`.
FLAGGED = frozenset(_TABLES)


def keys(on: ObjectKey) -> list[TupleKey]:
    """Return the tuple keys that the flag on this object requires."""
    return [TupleKey(Principal(type, ALL_USERS), MANAGED_ACCESS, on) for type in PrincipalType]


async def set_flag(connection: AsyncConnection, on: ObjectKey, managed: bool) -> bool:
    """Set or remove the flag. Return False if the object does not exist."""
    table = _TABLES[on.type]
    changed = update(table).where(table.c.id == UUID(on.id)).values(managed_access=managed)
    return (await connection.execute(changed)).rowcount == 1


async def flags(connection: AsyncConnection, warehouse_id: UUID, ids: Sequence[UUID]) -> tuple[bool, dict[UUID, bool]]:
    """Return (the warehouse's flag, the flags of these namespaces by id), using one statement."""
    rows = await connection.execute(
        text(
            "select w.managed_access, n.id, n.managed_access as flag from warehouses w "
            "left join namespaces n on n.id = any(cast(:ids as uuid[])) where w.id = :warehouse"
        ),
        {"ids": list(ids), "warehouse": warehouse_id},
    )
    found = rows.all()
    return any(row.managed_access for row in found), {row.id: row.flag for row in found if row.id is not None}
