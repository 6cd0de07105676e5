# SPDX-License-Identifier: Apache-2.0
"""Audit records."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, Index, LargeBinary, Table, Text, text
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata

audit_log = Table(
    "audit_log",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("request_id", Text, nullable=False),
    Column("actor_id", Text, nullable=False),
    Column("operation", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("record", LargeBinary, nullable=False),
    Index(None, "at"),
    Index(None, "actor_id", "at"),
    Index(None, "outcome", "at", postgresql_where=text("outcome <> 'allowed'")),
    postgresql_partition_by="RANGE (id)",
)
"""Audit records. `record` is the whole record as JSON. The partitions are months, because ids begin with their time."""
