# SPDX-License-Identifier: Apache-2.0
"""Record the columns of schemas that commits remove from the documents of tables.

Data policies cover every column that has or ever had one of their names. Without these rows a writer could rename a
column and remove the old schema, and the policy would not cover the column any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.db.tables.excerpts import excerpts_of
from gateway.iceberg.metadata import TableMetadata
from gateway.iceberg.updates import RemoveSchemas, TableUpdate
from gateway.obligations.projections import RestrictionNotExpressible, columns_of

_INSERT: Final = text(
    """
    insert into former_columns (table_id, field_id, name)
    select cast(:table_id as uuid), removed.field_id, removed.name
    from unnest(cast(:field_ids as integer[]), cast(:names as text[])) as removed(field_id, name)
    on conflict do nothing
    """
)


async def record_former_columns(
    connection: AsyncConnection, table_id: UUID, updates: Sequence[TableUpdate], after: TableMetadata
) -> None:
    """Record the top-level columns of the table that no schema of `after` has any more.

    Call it before the row is changed. Commits that remove no schema cost no statement.
    """
    if not any(isinstance(each, RemoveSchemas) for each in updates):
        return
    excerpt = (await excerpts_of(connection, [table_id])).get(table_id)
    if excerpt is None:
        return
    try:
        columns = columns_of(excerpt.text)
    except RestrictionNotExpressible:
        # Nobody under a data policy reads such a table.
        return
    had = {(field.id, field.name) for schema in (*columns.schemas, columns.current) for field in schema}
    removed = sorted(had - {(field.id, field.name) for schema in after.schemas for field in schema.fields})
    if removed:
        values = {"table_id": table_id, "field_ids": [id for id, _ in removed], "names": [name for _, name in removed]}
        await connection.execute(_INSERT, values)
