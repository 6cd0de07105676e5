# SPDX-License-Identifier: Apache-2.0
"""Tables, views and generic tables, which share one name space and one table."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    LargeBinary,
    Table,
    Text,
    and_,
    text,
)
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata, now, search_key

tables = Table(
    "tables",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id"), nullable=False),
    Column("namespace_id", UUID(as_uuid=True), ForeignKey("namespaces.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("table_uuid", UUID(as_uuid=True), nullable=False),
    Column("location", Text, nullable=False),
    Column("location_key", Text, nullable=False, unique=True),
    Column("metadata_location", Text),
    Column("metadata", LargeBinary),
    Column("metadata_excerpt", LargeBinary),
    Column("metadata_excerpt_of", Text),
    Column("format", Text),
    Column("version", BigInteger, nullable=False, server_default="1"),
    Column("staged_by", Text),
    Column("deleted_at", DateTime(timezone=True)),
    Column("deleted_by", Text),
    Column("protected", Boolean, nullable=False, server_default="false"),
    search_key("searchable(name_key)"),
    now("created_at"),
    now("updated_at", nullable=True),
    CheckConstraint("kind in ('table', 'view', 'generic_table')", name="kind"),
    CheckConstraint("(kind = 'generic_table') = (format is not null)", name="format_of_generic_tables"),
    CheckConstraint("(staged_by is null) = (metadata is not null)", name="staged_without_metadata"),
    CheckConstraint("staged_by is null or deleted_at is null", name="staged_or_deleted"),
)
"""Tables, views and generic tables share one name space.

A generic table has no metadata file: `metadata` is the description by its creator, and `format` is its format. A staged
table has no metadata yet, does not reserve its name, and is invisible. A dropped table in a warehouse with soft
deletion (`deleted_at`) does not reserve its name either. It keeps its location and its grants until the end of its
retention. Triggers (`first_schema.sql`) list its location as retired from the drop on, and change the warehouse's
revision in the transaction of the drop. `metadata_excerpt` is the part of the document that decisions read;
`metadata_excerpt_of` is the location of that document (`gateway.db.excerpts`).
"""

#: Rows that are neither staged nor dropped.
LIVE = and_(tables.c.staged_by.is_(None), tables.c.deleted_at.is_(None))

Index(
    "tables_namespace_id_name_key_key",
    tables.c.namespace_id,
    tables.c.name_key,
    unique=True,
    postgresql_where=LIVE,
)

Index(
    "tables_deleted_idx",
    tables.c.warehouse_id,
    tables.c.name_key,
    tables.c.id,
    postgresql_where=tables.c.deleted_at.is_not(None),
)

Index("tables_staged_idx", tables.c.namespace_id, tables.c.name_key, postgresql_where=tables.c.staged_by.is_not(None))

Index(
    "tables_signature_idx",
    tables.c.namespace_id,
    text("search_signature(search_key)"),
    postgresql_include=["id", "search_key"],
    postgresql_where=LIVE,
)

#: In the order of collation C, which a comparison of schemas does not see (`0036_location_ranges.py`).
Index("tables_location_range_idx", tables.c.location_key)
