# SPDX-License-Identifier: Apache-2.0
"""Metadata files that no pointer names yet."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, ForeignKey, Table, Text, func
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata

pending_files = Table(
    "pending_files",
    metadata,
    Column("location", Text, primary_key=True),
    Column("warehouse_id", UUID(as_uuid=True), ForeignKey("warehouses.id"), nullable=False),
    Column("written_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp(), index=True),
)
"""Metadata files that are being written and that no pointer names yet.

A trigger on `tables` deletes a row in the transaction that makes a pointer name its file (`first_schema.sql`).
"""
