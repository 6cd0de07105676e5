# SPDX-License-Identifier: Apache-2.0
"""Read what the replay of recorded decisions needs of data policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.restrictions.replayed_restrictions import MappedValue
from gateway.db.pools.rows import fetch_all
from gateway.db.schema.policies import data_policies, mapping_entries, mapping_tables, tags
from gateway.db.schema.principals import roles
from gateway.db.schema.warehouses import projects


class NamedPolicy(NamedTuple):
    """A data policy with the name of its project."""

    id: UUID
    version: int
    project: str
    project_id: str
    name: str
    applies_to: str
    allow_append: bool


class NamedObject(NamedTuple):
    """A role or a tag of a project."""

    id: UUID
    project_id: str
    name: str


async def named_policies(connection: AsyncConnection) -> Sequence[NamedPolicy]:
    """Return all data policies."""
    row = data_policies.c
    columns = (row.id, row.version, projects.c.name.label("project"), row.project_id, row.name)
    statement = select(*columns, row.applies_to, row.allow_append).join(projects, projects.c.id == row.project_id)
    return await fetch_all(connection, NamedPolicy, statement)


async def named_roles(connection: AsyncConnection) -> Sequence[NamedObject]:
    """Return all roles."""
    return await fetch_all(connection, NamedObject, select(roles.c.id, roles.c.project_id, roles.c.name))


async def named_tags(connection: AsyncConnection) -> Sequence[NamedObject]:
    """Return all tags."""
    return await fetch_all(connection, NamedObject, select(tags.c.id, tags.c.project_id, tags.c.name))


async def mapped_values(connection: AsyncConnection) -> Sequence[MappedValue]:
    """Return all values of mapping tables, with the folded names of the tables."""
    columns = (mapping_tables.c.project_id, mapping_tables.c.name_key.label("name"))
    statement = select(*columns, mapping_entries.c.principal_id, mapping_entries.c.value)
    joined = statement.join(mapping_entries, mapping_entries.c.mapping_id == mapping_tables.c.id)
    return await fetch_all(connection, MappedValue, joined)
