# SPDX-License-Identifier: Apache-2.0
"""Statements on warehouses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import func, literal, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from uuid_utils.compat import uuid7

from gateway.db.rows import AnyRow
from gateway.db.schema import warehouses
from gateway.iceberg.identifiers import fold

#: Serialises the overlap check of storage bases; warehouses are created rarely enough for one lock.
_STORAGE_BASES = 0x1A4E0001


async def create(
    connection: AsyncConnection,
    *,
    id: UUID,
    project_id: str,
    name: str,
    profile: bytes,
    base_key: str,
    secret_id: UUID | None,
    delete_profile: dict[str, Any],
    managed_by: str,
    allowed_format_versions: Sequence[int],
    default_format_version: int | None,
) -> bool:
    """Insert the warehouse; False when its name is taken in the project."""
    statement = (
        insert(warehouses)
        .values(
            id=id,
            project_id=project_id,
            name=name,
            name_key=fold(name),
            profile=profile,
            base_key=base_key,
            secret_id=secret_id,
            delete_profile=delete_profile,
            managed_by=managed_by,
            allowed_format_versions=list(allowed_format_versions),
            default_format_version=default_format_version,
            revision=uuid7(),
        )
        .on_conflict_do_nothing(index_elements=["project_id", "name_key"])
    )
    return (await connection.execute(statement)).rowcount == 1


async def overlapping(connection: AsyncConnection, base_key: str) -> bool:
    """Whether a warehouse of any project has a base equal to, above or below this one. Held until the transaction
    ends.
    """
    await connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": _STORAGE_BASES})
    statement = select(literal(1)).where(
        func.starts_with(warehouses.c.base_key, base_key) | func.starts_with(literal(base_key), warehouses.c.base_key)
    )
    return (await connection.execute(statement.limit(1))).one_or_none() is not None


async def of_project(connection: AsyncConnection, project_id: str, *, active: Sequence[bool]) -> Sequence[AnyRow]:
    """The project's warehouses with one of the given states, by name."""
    statement = select(warehouses).where(warehouses.c.project_id == project_id, warehouses.c.active.in_(list(active)))
    return (await connection.execute(statement.order_by(warehouses.c.name_key))).all()


async def get(connection: AsyncConnection, id: UUID) -> AnyRow:
    """The warehouse's whole row; the door has found it before."""
    return (await connection.execute(select(warehouses).where(warehouses.c.id == id))).one()
