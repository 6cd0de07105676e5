# SPDX-License-Identifier: Apache-2.0
"""The database tables of statistics: counts of requests, tables and views, and metrics reports of engines."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

from gateway.db.schema.base import metadata, now

endpoint_statistics = Table(
    "endpoint_statistics",
    metadata,
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE")),
    Column("route", Text, nullable=False),
    Column("status", SmallInteger, nullable=False),
    Column("hour", DateTime(timezone=True), nullable=False, index=True),
    Column("count", BigInteger, nullable=False),
    now("created_at"),
    now("updated_at", nullable=True),
    UniqueConstraint(
        "project_id",
        "hour",
        "warehouse_id",
        "route",
        "status",
        name="endpoint_statistics_key",
        postgresql_nulls_not_distinct=True,
    ),
    Index(None, "warehouse_id", "hour"),
)
"""Number of responses of an endpoint with a status in an hour. `warehouse_id` is null if none was concerned."""

warehouse_statistics = Table(
    "warehouse_statistics",
    metadata,
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE"), primary_key=True),
    Column("hour", DateTime(timezone=True), primary_key=True),
    Column("tables", BigInteger, nullable=False),
    Column("views", BigInteger, nullable=False),
    now("updated_at"),
)
"""Number of tables and views of a warehouse at the end of each hour in which it changed.

Changes that are still in `warehouse_changes` are not included.
"""

warehouse_changes = Table(
    "warehouse_changes",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column(
        "warehouse_id",
        UUID(as_uuid=True),
        ForeignKey("warehouses.id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("tables", BigInteger, nullable=False),
    Column("views", BigInteger, nullable=False),
    now("at"),
)
"""Changes of the numbers of tables and views. Triggers on `tables` write them (`statistics.sql`).

They are written in the transaction of the change. A background task adds them to `warehouse_statistics`.
"""


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
