# SPDX-License-Identifier: Apache-2.0
"""Metrics reports of engines."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, Table, Text
from sqlalchemy.dialects.postgresql import JSONB, UUID

from gateway.db.schema.base import metadata, now

table_reports = Table(
    "table_reports",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("warehouse_id", UUID(as_uuid=True), nullable=False),
    Column("table_id", UUID(as_uuid=True), nullable=False),
    Column("kind", Text, nullable=False),
    Column("snapshot_id", BigInteger, nullable=False),
    Column("reported_by", Text, nullable=False),
    now("at"),
    Column("report", JSONB, nullable=False),
    CheckConstraint("kind in ('scan-report', 'commit-report')", name="kind"),
    Index(None, "table_id", "at"),
    Index(None, "at"),
)
"""Metrics reports of engines about scans and commits. A report is kept when its table is deleted."""
