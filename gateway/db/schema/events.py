# SPDX-License-Identifier: Apache-2.0
"""Change events, the sinks for which they wait, and those that a sink refused."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, ForeignKey, Identity, Index, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import JSONB, UUID

from gateway.db.schema.base import metadata

events = Table(
    "events",
    metadata,
    Column("sequence", BigInteger, Identity(always=True), primary_key=True),
    Column("id", UUID(as_uuid=True), nullable=False, unique=True),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("type", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("attributes", JSONB, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Index(None, "at"),
)
"""Events of committed changes. `sequence` is the order of delivery."""

event_deliveries = Table(
    "event_deliveries",
    metadata,
    Column("sink", Text, primary_key=True),
    Column("sequence", BigInteger, ForeignKey("events.sequence", ondelete="CASCADE"), primary_key=True),
)
"""The events that wait for each sink."""

event_dead_letters = Table(
    "event_dead_letters",
    metadata,
    Column("sink", Text, primary_key=True),
    Column("sequence", BigInteger, ForeignKey("events.sequence", ondelete="CASCADE"), primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("reason", Text, nullable=False),
)
"""The events that a sink refused, with the reason."""
