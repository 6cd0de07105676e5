# SPDX-License-Identifier: Apache-2.0
"""The tables of namespaces, tables, views and generic tables, of their former names and locations, and of files.

The files are metadata files to which no pointer refers.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
    and_,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from gateway.db.schema.base import metadata, now, search_key

namespaces = Table(
    "namespaces",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id"), nullable=False),
    Column("parent_id", UUID(as_uuid=True), ForeignKey("namespaces.id")),
    Column("ancestors", ARRAY(UUID(as_uuid=True)), nullable=False),
    Column("levels", ARRAY(Text), nullable=False),
    Column("path_key", Text, nullable=False),
    Column("properties", JSONB, nullable=False),
    Column("protected", Boolean, nullable=False, server_default="false"),
    Column("managed_access", Boolean, nullable=False, server_default="false"),
    search_key("searchable(path_key)"),
    now("created_at"),
    now("updated_at", nullable=True),
    UniqueConstraint("warehouse_id", "path_key"),
    Index(None, "parent_id"),
)
"""`path_key` is the folded levels, joined by U+001F. `ancestors` are the ids from the top level down to the parent."""


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
retention. Triggers (`locations.sql`) list its location as retired from the drop on, and change the warehouse's
revision in the transaction of the drop. `metadata_excerpt` is the part of the document that decisions read;
`metadata_excerpt_of` is the location of that document (`gateway.db.tables.excerpts`).
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

# Counts of tables are read from the index alone.
Index("tables_counted_idx", tables.c.namespace_id, tables.c.kind, postgresql_where=LIVE)

#: The index has the collation C, which the comparison of schemas does not see (`first_schema.sql`).
Index("tables_location_range_idx", tables.c.location_key)


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

Triggers on `tables` and `namespaces` (`former_names.sql`) write a row in the transaction of the rename or move. A name
has one row, even if it was used again and changed again. A moved namespace gets a row for itself and for each namespace
below it. A table or namespace that leaves a namespace also gets a row for each former name of that namespace and its
ancestors, at most 21 of them. The rows of a deleted object are deleted with it.
"""


vacated_names = Table(
    "vacated_names",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True, server_default=text("gen_random_uuid()")),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE"), nullable=False),
    Column("path_key", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("policy_id", UUID(as_uuid=True), ForeignKey("data_policies.id", ondelete="CASCADE"), nullable=False),
    Column("tag_id", UUID(as_uuid=True), ForeignKey("tags.id", ondelete="CASCADE")),
    Column("column_name", Text),
    Column("released", ARRAY(Integer), nullable=False),
    now("vacated_at"),
    Column("taken_by", UUID(as_uuid=True)),
    Column("taken_in", BigInteger),
    Column("announced_at", DateTime(timezone=True)),
    Index("vacated_names_name_idx", "warehouse_id", "path_key", "name_key"),
    Index(None, "policy_id"),
)
"""One row for each restriction of an object that left its name by a rename, a move or a drop.

`path_key` is the folded path of the namespace, and `name_key` the folded name; the name of a namespace is empty. A row
without `tag_id` is a policy that was bound to the object or above it. A row with it is a policy that reached the object
through that tag or names tags, and `column_name` the column with the tag, null for a tag of the whole object.
`released` are the field ids that the policy did not cover. Triggers (`vacated_names.sql`) write the rows, and set
`taken_by` to the next object of the name, and `taken_in` to the transaction. `gateway.db.engine.policy_loss` compares
them in that transaction: rows that hold for the new object are deleted, and a permitted loss gets `announced_at`.
"""

Index("vacated_names_tag_id_idx", vacated_names.c.tag_id, postgresql_where=vacated_names.c.tag_id.is_not(None))

Index(
    "vacated_names_taken_in_idx",
    vacated_names.c.taken_in,
    postgresql_where=text("taken_in is not null and announced_at is null"),
)

Index("vacated_names_vacated_at_idx", vacated_names.c.vacated_at, postgresql_where=vacated_names.c.taken_by.is_(None))


retired_locations = Table(
    "retired_locations",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True, server_default=func.gen_random_uuid()),
    Column("table_id", UUID(as_uuid=True), nullable=False, index=True),
    Column("warehouse_id", UUID(as_uuid=True), nullable=False),
    Column("location", Text, nullable=False),
    Column("location_key", Text, nullable=False, index=True),
    Column("retired_by", Text),
    now("retired_at"),
    Column("keys_until", DateTime(timezone=True), nullable=False),
    Column("files_remain", Boolean, nullable=False, server_default="true"),
    Column("owners", ARRAY(Text), nullable=False, server_default="{}"),
    Column("metadata_location", Text),
)
"""Former locations of tables, views and staged tables that were deleted or moved.

A trigger on `tables` writes a row in the transaction that gives up the location (`locations.sql`). `keys_until` is
the expiry of the last credential for it. `retired_by` is the principal that gave it up; for a staged table, the one
that staged it and had credentials. `owners` are the principals (`user:<id>`, `role:<id>`) with ownership without an
expiry at that time: they may register the files. `metadata_location` is the last metadata file. `retired_locations.py`
has the statements.
"""

#: The index has the collation C, which the comparison of schemas does not see (`first_schema.sql`).
Index("retired_locations_location_range_idx", retired_locations.c.location_key)


pending_files = Table(
    "pending_files",
    metadata,
    Column("location", Text, primary_key=True),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id"), nullable=False),
    Column("written_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp(), index=True),
)
"""Metadata files that are being written and that no pointer names yet.

A trigger on `tables` deletes a row in the transaction that makes a pointer name its file (`locations.sql`).
"""
