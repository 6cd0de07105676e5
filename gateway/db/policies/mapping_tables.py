# SPDX-License-Identifier: Apache-2.0
"""Statements on mapping tables, which map users and roles to values for row filters, and on their entries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from sqlalchemy import delete as delete_from
from sqlalchemy import func, insert, or_, select, tuple_
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.tuples import Principal
from gateway.db.pools.rows import columns_for, fetch_all, fetch_one, fetch_optional
from gateway.db.schema.policies import mapping_entries, mapping_tables
from gateway.iceberg.identifiers import fold

MappedPrincipal = tuple[str, str]
"""Type and id of a user or role."""


class MappingTableRow(NamedTuple):
    """A mapping table."""

    id: UUID
    project_id: str
    name: str
    description: str | None
    created_at: datetime


class EntryRow(NamedTuple):
    """A principal with its values in a mapping table."""

    principal_type: str
    principal_id: str
    values: Sequence[str]


_COLUMNS: Final = columns_for(MappingTableRow, mapping_tables)


class NameTaken(Exception):
    """Another mapping table of the project has this name. The transaction cannot continue."""


async def create(
    connection: AsyncConnection, *, id: UUID, project_id: str, name: str, description: str | None
) -> MappingTableRow:
    """Insert a mapping table and return its row. Raises NameTaken."""
    values = {"id": id, "project_id": project_id, "name": name, "name_key": fold(name), "description": description}
    try:
        row = await fetch_one(connection, MappingTableRow, insert(mapping_tables).values(values).returning(*_COLUMNS))
    except IntegrityError as error:
        if "name_key_key" in str(error.orig):
            raise NameTaken from error
        raise
    return row


async def get(connection: AsyncConnection, id: UUID, *, project_id: str, lock: bool = False) -> MappingTableRow | None:
    """Return the row of a mapping table of the project, or None. With `lock`, lock it until the transaction ends."""
    statement = select(*_COLUMNS).where(mapping_tables.c.id == id, mapping_tables.c.project_id == project_id)
    if lock:
        statement = statement.with_for_update()
    return await fetch_optional(connection, MappingTableRow, statement)


async def page(
    connection: AsyncConnection, project_id: str, *, after: UUID | None, limit: int
) -> Sequence[MappingTableRow]:
    """Return the mapping tables of a project, ordered by id. The page starts after the id `after`."""
    statement = select(*_COLUMNS).where(mapping_tables.c.project_id == project_id)
    if after is not None:
        statement = statement.where(mapping_tables.c.id > after)
    return await fetch_all(connection, MappingTableRow, statement.order_by(mapping_tables.c.id).limit(limit))


async def delete(connection: AsyncConnection, id: UUID) -> None:
    """Delete a mapping table with its entries."""
    await connection.execute(delete_from(mapping_tables).where(mapping_tables.c.id == id))


async def entries(
    connection: AsyncConnection, id: UUID, *, after: MappedPrincipal | None, limit: int
) -> Sequence[EntryRow]:
    """Return the principals with their values, ordered by type and id. The page starts after the principal `after`."""
    of = (mapping_entries.c.principal_type, mapping_entries.c.principal_id)
    found = func.array_agg(mapping_entries.c.value.op("order by")(mapping_entries.c.value)).label("values")
    statement = select(*of, found).where(mapping_entries.c.mapping_id == id).group_by(*of).order_by(*of).limit(limit)
    if after is not None:
        type, principal = after
        later = (of[0] == type) & (of[1] > principal)
        statement = statement.where(or_(of[0] > type, later))
    return await fetch_all(connection, EntryRow, statement)


async def replace(
    connection: AsyncConnection,
    id: UUID,
    *,
    values: Sequence[tuple[MappedPrincipal, Sequence[str]]],
    removed: Sequence[MappedPrincipal],
) -> None:
    """Set the values of some principals, and remove the values of others.

    Call `data_policy_revisions.touch` afterwards.
    """
    principals = [*(principal for principal, _ in values), *removed]
    if principals:
        key = tuple_(mapping_entries.c.principal_type, mapping_entries.c.principal_id)
        await connection.execute(
            delete_from(mapping_entries).where(mapping_entries.c.mapping_id == id, key.in_(principals))
        )
    rows = [
        {"mapping_id": id, "principal_type": type, "principal_id": principal, "value": value}
        for (type, principal), some in values
        for value in dict.fromkeys(some)
    ]
    if rows:
        await connection.execute(insert(mapping_entries), rows)


async def delete_entries_of(connection: AsyncConnection, principal: Principal) -> None:
    """Delete the values of a deleted user or role in all mapping tables, so that a returning user has no values.

    No new data policy revision is needed: values are read for each request, and the principal has no rights any more.
    """
    of = (mapping_entries.c.principal_type == principal.type.value, mapping_entries.c.principal_id == principal.id)
    await connection.execute(delete_from(mapping_entries).where(*of))
