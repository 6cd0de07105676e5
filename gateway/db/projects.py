# SPDX-License-Identifier: Apache-2.0
"""Statements on projects."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.rows import AnyRow
from gateway.db.schema import projects
from gateway.iceberg.identifiers import fold


async def create(connection: AsyncConnection, *, id: str, name: str) -> bool:
    """Insert the project; False when its id or its name (whatever the letter case) is taken."""
    statement = insert(projects).values(id=id, name=name, name_key=fold(name)).on_conflict_do_nothing()
    return (await connection.execute(statement)).rowcount == 1


async def all_projects(connection: AsyncConnection) -> Sequence[AnyRow]:
    """Every project's id and name, by name."""
    return (await connection.execute(select(projects.c.id, projects.c.name).order_by(projects.c.name_key))).all()
