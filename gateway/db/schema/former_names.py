# SPDX-License-Identifier: Apache-2.0
"""Names that tables, views, generic tables and namespaces had before a rename or a move."""

from __future__ import annotations

from sqlalchemy import ARRAY, Column, ForeignKey, Index, Table, Text
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata, now

former_table_names = Table(
    "former_table_names",
    metadata,
    Column("table_id", UUID(as_uuid=True), ForeignKey("tables.id", ondelete="CASCADE"), primary_key=True),
    Column("path_key", Text, primary_key=True),
    Column("levels", ARRAY(Text), nullable=False),
    now("until"),
)
Index("former_table_names_until_idx", former_table_names.c.table_id, former_table_names.c.until.desc())

former_namespace_names = Table(
    "former_namespace_names",
    metadata,
    Column("namespace_id", UUID(as_uuid=True), ForeignKey("namespaces.id", ondelete="CASCADE"), primary_key=True),
    Column("path_key", Text, primary_key=True),
    Column("levels", ARRAY(Text), nullable=False),
    now("until"),
)
Index("former_namespace_names_until_idx", former_namespace_names.c.namespace_id, former_namespace_names.c.until.desc())
"""`levels` is the full former name; of a table, its own name is the last element. `path_key` is the folded form.

Triggers on `tables` and `namespaces` (`first_schema.sql`) write a row in the transaction of the rename or move. A name
has one row, even if it was used again and changed again. A moved namespace gets a row for itself and for each namespace
below it. A table or namespace that leaves a namespace also gets a row for each former name of that namespace and its
ancestors, at most 21 of them. The rows of a deleted object are deleted with it.
"""
