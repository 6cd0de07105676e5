# SPDX-License-Identifier: Apache-2.0
"""The table of access requests: a principal asks for privileges on an object, and a grantor decides."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, DateTime, ForeignKey, Index, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, UUID

from gateway.db.schema.base import metadata, now

access_requests = Table(
    "access_requests",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("principal", Text, nullable=False),
    Column("bundle", UUID(as_uuid=True)),
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("warehouse_id", UUID(as_uuid=True)),
    Column("object_type", Text, nullable=False),
    Column("object_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("privileges", ARRAY(Text), nullable=False),
    Column("reason", Text, nullable=False),
    Column("duration", Integer, nullable=False),
    Column("status", Text, nullable=False, server_default="pending"),
    now("created_at"),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("reminded_at", DateTime(timezone=True)),
    Column("decided_by", Text),
    Column("decided_at", DateTime(timezone=True)),
    Column("comment", Text),
    Column("granted", ARRAY(Text)),
    Column("ends_at", DateTime(timezone=True)),
    Column("ended_by", Text),
    Column("ended_at", DateTime(timezone=True)),
    CheckConstraint("status in ('pending', 'approved', 'denied', 'withdrawn', 'ended')", name="status"),
    Index(None, "principal", "id"),
    Index(None, "bundle"),
    Index(None, "object_type", "object_id", "id"),
    Index(None, "project_id", "id"),
    Index(None, "warehouse_id", "id"),
    Index("access_requests_pending_idx", "id", postgresql_where=text("status = 'pending'")),
)
"""`principal` is the user that requests the privileges, and receives the grants. `duration` is in seconds.
Rows with the same `bundle` were requested together.

A pending request expires at `expires_at`. An approved one has the privileges in `granted`, whose grants expire at
`ends_at`. `name` is the name of the object at the time of the request. Statuses that follow from the time, `expired`
and the end of a grant, are computed by `gateway.db.grants.access_requests` and not stored.
"""
