# SPDX-License-Identifier: Apache-2.0
"""The table of break-glass activations: a user takes rights for an emergency, and a review follows."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, DateTime, ForeignKey, Index, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, UUID

from gateway.db.schema.base import metadata, now

break_glass_activations = Table(
    "break_glass_activations",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("principal", Text, nullable=False),
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), nullable=False),
    Column("object_type", Text, nullable=False),
    Column("object_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("privileges", ARRAY(Text), nullable=False),
    Column("reason", Text, nullable=False),
    Column("minutes", Integer, nullable=False),
    Column("status", Text, nullable=False),
    now("created_at"),
    Column("latest_end", DateTime(timezone=True), nullable=False),
    Column("confirmed_by", Text),
    Column("activated_at", DateTime(timezone=True)),
    Column("ends_at", DateTime(timezone=True)),
    Column("ended_by", Text),
    Column("ended_at", DateTime(timezone=True)),
    Column("reviewed_by", Text),
    Column("reviewed_at", DateTime(timezone=True)),
    Column("finding", Text),
    CheckConstraint("status in ('pending', 'active', 'ended', 'lapsed', 'reviewed')", name="status"),
    CheckConstraint("reviewed_by <> principal", name="review"),
    CheckConstraint("confirmed_by <> principal", name="confirmation"),
    Index("break_glass_activations_active_idx", "principal", postgresql_where=text("status = 'active'")),
    Index(None, "principal", "id"),
    Index(None, "object_type", "object_id", "id"),
    Index(None, "project_id", "id"),
    Index(None, "warehouse_id", "id"),
)
"""A pending activation waits for a second person. `latest_end` is the time at which the pending one lapses, and after
which no grant of the activation is valid: the right of its user can end before the requested minutes.

The grants of an active one expire at `ends_at`. The statuses that follow from the time are computed by
`gateway.db.grants.break_glass`. A row outlives its object and its warehouse, so that its review can be closed.
"""
