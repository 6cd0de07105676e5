# SPDX-License-Identifier: Apache-2.0
"""Statements on mapping tables and their entries."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import delete as delete_from
from sqlalchemy import func, insert, or_, select, tuple_
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.tuples import Principal
from gateway.db.pools.rows import AnyRow
from gateway.db.schema.policies import mapping_entries, mapping_tables
from gateway.iceberg.identifiers import fold

MappedPrincipal = tuple[str, str]
"""Type and id of a user or role."""


class NameTaken(Exception):
    """Another mapping table of the project has this name. The transaction cannot continue."""


async def create(
    connection: AsyncConnection, *, id: UUID, project_id: str, name: str, description: str | None
) -> AnyRow:
    """Insert a mapping table and return its row. Raises NameTaken."""
    values = {"id": id, "project_id": project_id, "name": name, "name_key": fold(name), "description": description}
    try:
        row: AnyRow = (await connection.execute(insert(mapping_tables).values(values).returning(mapping_tables))).one()
    except IntegrityError as error:
        if "name_key_key" in str(error.orig):
            raise NameTaken from error
        raise
    return row


async def get(connection: AsyncConnection, id: UUID, *, project_id: str, lock: bool = False) -> AnyRow | None:
    """Return the row of a mapping table of the project, or None. With `lock`, lock it until the transaction ends."""
    statement = select(mapping_tables).where(mapping_tables.c.id == id, mapping_tables.c.project_id == project_id)
    if lock:
        statement = statement.with_for_update()
    return (await connection.execute(statement)).one_or_none()


async def page(connection: AsyncConnection, project_id: str, *, after: UUID | None, limit: int) -> Sequence[AnyRow]:
    """Return the mapping tables of a project, ordered by id, starting after `after`."""
    statement = select(mapping_tables).where(mapping_tables.c.project_id == project_id)
    if after is not None:
        statement = statement.where(mapping_tables.c.id > after)
    return (await connection.execute(statement.order_by(mapping_tables.c.id).limit(limit))).all()


async def delete(connection: AsyncConnection, id: UUID) -> None:
    """Delete a mapping table with its entries."""
    await connection.execute(delete_from(mapping_tables).where(mapping_tables.c.id == id))


async def entries(
    connection: AsyncConnection, id: UUID, *, after: MappedPrincipal | None, limit: int
) -> Sequence[AnyRow]:
    """Return (principal_type, principal_id, values) of each principal, in this order, starting after `after`."""
    of = (mapping_entries.c.principal_type, mapping_entries.c.principal_id)
    found = func.array_agg(mapping_entries.c.value.op("order by")(mapping_entries.c.value)).label("values")
    statement = select(*of, found).where(mapping_entries.c.mapping_id == id).group_by(*of).order_by(*of).limit(limit)
    if after is not None:
        type, principal = after
        later = (of[0] == type) & (of[1] > principal)
        statement = statement.where(or_(of[0] > type, later))
    return (await connection.execute(statement)).all()


async def replace(
    connection: AsyncConnection,
    id: UUID,
    *,
    values: Sequence[tuple[MappedPrincipal, Sequence[str]]],
    removed: Sequence[MappedPrincipal],
) -> None:
    """Replace the values of principals, and remove those of others. Call `data_policy_revisions.touch` afterwards."""
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
    """Delete the values of a deleted user or role in all mapping tables: a user that returns has no values.

    No data policy revision is needed. Values are read for each request, and the principal has no rights any more.
    """
    of = (mapping_entries.c.principal_type == principal.type.value, mapping_entries.c.principal_id == principal.id)
    await connection.execute(delete_from(mapping_entries).where(*of))
