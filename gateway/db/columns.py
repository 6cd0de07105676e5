# SPDX-License-Identifier: Apache-2.0
"""Statements about columns: what is granted on them, and what their tables call them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, Text, func, literal_column, or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.rows import AnyRow
from gateway.db.schema.grants import grants

_table: ColumnElement[str] = func.split_part(grants.c.object_id, literal_column("'.'"), literal_column("1"))
#: Whether a grant is on a column. A literal: the partial index is found by it.
ON_A_COLUMN = grants.c.object_type == literal_column("'column'", Text)


async def granted_on(
    connection: AsyncConnection, table_id: UUID, *, after: UUID | None, limit: int
) -> Sequence[AnyRow]:
    """The live grants on all columns of a table, oldest first, those after the row `after`; rows of `grants`."""
    live = or_(grants.c.expires_at.is_(None), grants.c.expires_at > func.clock_timestamp())
    statement = select(grants).where(ON_A_COLUMN, _table == str(table_id), live).order_by(grants.c.id).limit(limit)
    if after is not None:
        statement = statement.where(grants.c.id > after)
    return (await connection.execute(statement)).all()


# The document is taken apart here: most of a large one are snapshots, which nobody asked for.
_SCHEMAS = text(
    """
    select t.id, json_build_object('current-schema-id', t.document -> 'current-schema-id',
        'schemas', coalesce(t.document -> 'schemas', '[]'::json), 'schema', t.document -> 'schema')::text as schemas
    from (select id, convert_from(metadata, 'UTF8')::json as document from tables
          where id = any(cast(:ids as uuid[])) and kind = 'table' and metadata is not null) t
    """
)


async def schemas_of(connection: AsyncConnection, table_ids: Sequence[UUID]) -> dict[UUID, bytes]:
    """Of each table that there is the part of its metadata document that tells of its columns."""
    if not table_ids:
        return {}
    rows = await connection.execute(_SCHEMAS, {"ids": list(dict.fromkeys(table_ids))})
    return {row.id: row.schemas.encode() for row in rows}
