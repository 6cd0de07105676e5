# SPDX-License-Identifier: Apache-2.0
"""Namespaces."""

from __future__ import annotations

from sqlalchemy import ARRAY, Boolean, Column, ForeignKey, Index, Table, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB, UUID

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
