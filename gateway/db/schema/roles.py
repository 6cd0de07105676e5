# SPDX-License-Identifier: Apache-2.0
"""Roles."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, Table, Text, UniqueConstraint
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata, now, search_key

roles = Table(
    "roles",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("project_id", Text, ForeignKey("projects.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("description", Text),
    Column("provider_id", Text, nullable=False),
    Column("source_id", Text, nullable=False),
    search_key("searchable(name_key)"),
    now("created_at"),
    now("updated_at", nullable=True),
    UniqueConstraint("project_id", "name_key"),
    UniqueConstraint("project_id", "provider_id", "source_id"),
    # Groups of a token are looked up in all projects at once.
    Index("roles_by_source", "provider_id", "source_id"),
)
