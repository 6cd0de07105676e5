# SPDX-License-Identifier: Apache-2.0
"""Registers of the audit log: partitions that retention removed, and positions of continuous exports."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, Table, Text
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata

audit_removals = Table(
    "audit_removals",
    metadata,
    Column("below", UUID(as_uuid=True), primary_key=True),
    Column("partition", Text, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("removed_at", DateTime(timezone=True), nullable=False),
)
"""One row for each removed partition. All of its records had an id smaller than `below`."""

audit_exports = Table(
    "audit_exports",
    metadata,
    Column("name", Text, primary_key=True),
    Column("block", BigInteger, nullable=False),
    Column("holder", UUID(as_uuid=True)),
    Column("held_until", DateTime(timezone=True)),
)
"""The last exported block of each continuous export. `holder` is the process that exports until `held_until`."""
