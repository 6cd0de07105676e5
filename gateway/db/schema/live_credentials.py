# SPDX-License-Identifier: Apache-2.0
"""Issued credentials that have not expired."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, Index, Table, Text
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata, now

live_credentials = Table(
    "live_credentials",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("principal", Text, nullable=False, index=True),
    Column("assumed_role", UUID(as_uuid=True)),
    Column("engine", Text),
    Column("view_owner", Text),
    Column("project_id", Text, nullable=False),
    Column("warehouse_id", UUID(as_uuid=True), nullable=False),
    Column("kind", Text, nullable=False),
    Column("table_id", UUID(as_uuid=True), nullable=False),
    Column("prefix", Text, nullable=False),
    Column("level", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("session_name", Text, nullable=False),
    Column("policy_digest", Text, nullable=False),
    now("issued_at"),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("live_until", DateTime(timezone=True), nullable=False, index=True),
    Index(None, "table_id", "id"),
    Index(None, "warehouse_id", "id"),
)
"""One row for each credential that left the gateway. `IssuedCredential` describes the columns.

No column references another table: a credential outlives its table, warehouse and principal. `issued_at` and
`live_until` are times of the database's clock. After `live_until` the credential has expired by every clock; then
housekeeping deletes the row.
"""

Index("live_credentials_engine_idx", live_credentials.c.engine, postgresql_where=live_credentials.c.engine.is_not(None))
Index(
    "live_credentials_view_owner_idx",
    live_credentials.c.view_owner,
    postgresql_where=live_credentials.c.view_owner.is_not(None),
)
