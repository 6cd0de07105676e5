# SPDX-License-Identifier: Apache-2.0
"""Statements on former names of objects, and on columns that a commit removed from the metadata document.

A data policy covers every column that has or ever had one of its names. Without these rows a writer could rename a
column and remove the old schema, and the policy would not cover the column any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Label, any_, func, select, text
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.access.nouns.resolved import MAX_FORMER_NAMES, FormerNames
from gateway.db.schema.tables import former_namespace_names, former_table_names, namespaces, tables
from gateway.db.tables.excerpts import excerpts_of
from gateway.iceberg.metadata import TableMetadata
from gateway.iceberg.updates import RemoveSchemas, TableUpdate
from gateway.obligations.projections import RestrictionNotExpressible, columns_of


def former_names_of_namespace() -> Label[Any]:
    """Return the column `n_former`: the former names of a namespace and of all namespaces above it, newest first."""
    path = func.array_append(namespaces.c.ancestors, namespaces.c.id)
    return _newest(former_namespace_names, former_namespace_names.c.namespace_id == any_(path)).label("n_former")


def former_names_of_table() -> Label[Any]:
    """Return the column `t_former`: the former full names of a table, newest first."""
    return _newest(former_table_names, former_table_names.c.table_id == tables.c.id).label("t_former")


def former_from(value: Any) -> FormerNames:
    """Return the former names in such a column. If it has one name more than the limit, there are more of them."""
    names = tuple(tuple(levels) for levels in value or ())
    return FormerNames(names=names[:MAX_FORMER_NAMES], complete=len(names) <= MAX_FORMER_NAMES)


def _newest(table: Any, of: ColumnElement[bool]) -> ColumnElement[Any]:
    newest = (
        select(table.c.levels, table.c.until)
        .where(of)
        .correlate(namespaces, tables)
        .order_by(table.c.until.desc())
        .limit(MAX_FORMER_NAMES + 1)
        .subquery()
    )
    levels = func.to_jsonb(newest.c.levels)
    return select(func.jsonb_agg(aggregate_order_by(levels, newest.c.until.desc()), type_=JSONB)).scalar_subquery()


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
    """Record the top-level columns of the table that no schema of the document `after` contains any more.

    Call it before the row is changed. A commit that removes no schema needs no statement.
    """
    if not any(isinstance(each, RemoveSchemas) for each in updates):
        return
    excerpt = (await excerpts_of(connection, [table_id])).get(table_id)
    if excerpt is None:
        return
    try:
        columns = columns_of(excerpt.text)
    except RestrictionNotExpressible:
        # The columns of such a table are unknown, so a principal that a data policy restricts can read nothing of it.
        return
    had = {(field.id, field.name) for schema in (*columns.schemas, columns.current) for field in schema}
    removed = sorted(had - {(field.id, field.name) for schema in after.schemas for field in schema.fields})
    if removed:
        values = {"table_id": table_id, "field_ids": [id for id, _ in removed], "names": [name for _, name in removed]}
        await connection.execute(_INSERT, values)
