# SPDX-License-Identifier: Apache-2.0
"""Tickets of changes that wait for approval."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, DateTime, ForeignKey, Index, Table, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from gateway.db.schema.base import metadata, now

change_tickets = Table(
    "change_tickets",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("digest", Text, nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE"), nullable=False),
    Column("object_type", Text, nullable=False),
    Column("object_id", UUID(as_uuid=True), nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("reasons", ARRAY(Text), nullable=False),
    Column("change", JSONB, nullable=False),
    Column("status", Text, nullable=False, server_default="pending"),
    now("created_at"),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("decided_by", Text),
    Column("decided_at", DateTime(timezone=True)),
    Column("comment", Text),
    Column("used_at", DateTime(timezone=True)),
    CheckConstraint("status in ('pending', 'approved', 'rejected', 'used', 'lapsed')", name="status"),
    Index(None, "digest", unique=True, postgresql_where=text("status in ('pending', 'approved', 'rejected')")),
    Index(None, "warehouse_id", "id"),
    Index(None, "expires_at"),
)
"""A ticket is about the object that the change concerns. A creation concerns the container of the new object.

`digest` identifies the change (`gateway.verification.change_digest`). At most one ticket with a digest is open:
pending, approved or rejected. `used` tickets were consumed by the change. `lapsed` ones expired, or the verifiers gave
other reasons.
"""
