# SPDX-License-Identifier: Apache-2.0
"""Tag definitions of projects, and the objects that carry tags."""

from __future__ import annotations

from sqlalchemy import ARRAY, CheckConstraint, Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata, now

tags = Table(
    "tags",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("description", Text),
    Column("scope", ARRAY(Text), nullable=False),
    Column("value_kind", Text, nullable=False),
    Column("allowed_values", ARRAY(Text), nullable=False, server_default="{}"),
    now("created_at"),
    now("updated_at", nullable=True),
    UniqueConstraint("project_id", "name_key"),
    CheckConstraint("value_kind in ('marker', 'free-text', 'enumerated')", name="value_kind"),
)
"""`scope` holds the types of objects that may carry the tag. `allowed_values` are those of an enumerated tag."""

tag_attachments = Table(
    "tag_attachments",
    metadata,
    Column("tag_id", UUID(as_uuid=True), ForeignKey("tags.id"), nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE"), nullable=False),
    Column("object_type", Text, nullable=False),
    Column("object_id", UUID(as_uuid=True), nullable=False),
    Column("field_id", Integer),
    Column("column_name", Text),
    Column("value", Text),
    Column("attached_by", Text, nullable=False),
    now("attached_at"),
    now("created_at"),
    Index(None, "object_id", "tag_id", unique=True, postgresql_where=text("field_id is null")),
    Index(None, "object_id", "tag_id", "field_id", unique=True, postgresql_where=text("field_id is not null")),
    Index(None, "tag_id", "object_id"),
)
"""`object_id` is the id of a warehouse, namespace, table, view or generic table. For a column it is the id of the table
(`object_type` is `column`), with the field id, and the name that the column had then. `attached_at` is the time of the
last change. It precedes `created_at` if the tag was carried from another object.
"""
