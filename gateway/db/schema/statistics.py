# SPDX-License-Identifier: Apache-2.0
"""Counts of calls, tables and views."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
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
from sqlalchemy.dialects.postgresql import UUID

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
"""How often an endpoint was answered with a status within an hour; without a warehouse when it was about none."""

warehouse_statistics = Table(
    "warehouse_statistics",
    metadata,
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id", ondelete="CASCADE"), primary_key=True),
    Column("hour", DateTime(timezone=True), primary_key=True),
    Column("tables", BigInteger, nullable=False),
    Column("views", BigInteger, nullable=False),
    now("updated_at"),
)
"""How many tables and views a warehouse had at the end of each hour in which that changed, but for what is in
`warehouse_changes` still.
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
"""Changes of the number of tables and views. Triggers on `tables` write them in the transaction of the change
(`first_schema.sql`); a background task adds them to `warehouse_statistics`.
"""
