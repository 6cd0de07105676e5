# SPDX-License-Identifier: Apache-2.0
"""Statements on projects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import delete, exists, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.pools.rows import columns_for, fetch_all
from gateway.db.schema.objects import IN_PROJECTS
from gateway.db.schema.warehouses import projects, warehouses
from gateway.iceberg.identifiers import fold


class ProjectRow(NamedTuple):
    """A project."""

    id: str
    name: str


class NameTaken(Exception):
    """Another project has this name, irrespective of letter case. The transaction cannot continue."""


async def create(connection: AsyncConnection, *, id: str, name: str) -> bool:
    """Insert the project. Return False if its id or its name (ignoring letter case) is taken."""
    statement = insert(projects).values(id=id, name=name, name_key=fold(name)).on_conflict_do_nothing()
    return (await connection.execute(statement)).rowcount == 1


async def exists_with(connection: AsyncConnection, id: str) -> bool:
    """Return True if a project has this id."""
    return (await connection.execute(select(projects.c.id).where(projects.c.id == id))).one_or_none() is not None


async def all_projects(connection: AsyncConnection) -> Sequence[ProjectRow]:
    """Return every project, ordered by name."""
    return await fetch_all(
        connection, ProjectRow, select(*columns_for(ProjectRow, projects)).order_by(projects.c.name_key)
    )


async def rename(connection: AsyncConnection, id: str, name: str) -> bool:
    """Rename a project. Return False if it does not exist. Raises NameTaken."""
    changed = update(projects).where(projects.c.id == id).values(name=name, name_key=fold(name))
    try:
        return (await connection.execute(changed)).rowcount == 1
    except IntegrityError as error:
        if "name_key" in str(error.orig):
            raise NameTaken("another project has this name") from error
        raise


async def delete_if_empty(connection: AsyncConnection, id: str) -> bool | None:
    """Delete the project. Return False if it has warehouses, roles, tags or data policies, and None if it does not
    exist.

    Roles, tags and data policies count as content, because the deletion of each needs a right on it. Call
    `ownership.record_deleted` in the same transaction afterwards.
    """
    locked = select(projects.c.id).where(projects.c.id == id).with_for_update()
    if (await connection.execute(locked)).one_or_none() is None:
        return None
    contents = (warehouses, *IN_PROJECTS.values())
    inside = select(or_(*(exists().where(each.c.project_id == id) for each in contents)))
    if (await connection.execute(inside)).scalar_one() is True:
        return False
    await connection.execute(delete(projects).where(projects.c.id == id))
    return True
