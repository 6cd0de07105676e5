# SPDX-License-Identifier: Apache-2.0
"""The outbox of change events: the events, the sinks that still need each, and those that a sink refused.

There is no position up to which a sink has read. A transaction that commits late therefore cannot be skipped.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, ForeignKey, Identity, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import JSONB, UUID

from gateway.db.schema.base import metadata

events = Table(
    "events",
    metadata,
    Column("sequence", BigInteger, Identity(always=True), primary_key=True),
    Column("id", UUID(as_uuid=True), nullable=False, unique=True),
    Column("at", DateTime(timezone=True), nullable=False, index=True),
    Column("type", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("attributes", JSONB, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
"""Events of committed changes, in the order of delivery. `key` is the id of the changed object."""

event_deliveries = Table(
    "event_deliveries",
    metadata,
    Column("sink", Text, primary_key=True),
    Column("sequence", BigInteger, ForeignKey("events.sequence", ondelete="CASCADE"), primary_key=True, index=True),
)
"""The sinks that still need an event. The delivery deletes the row, so the wide rows of events are never rewritten."""

event_dead_letters = Table(
    "event_dead_letters",
    metadata,
    Column("sink", Text, primary_key=True),
    Column("sequence", BigInteger, ForeignKey("events.sequence", ondelete="CASCADE"), primary_key=True, index=True),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("reason", Text, nullable=False),
)
"""Events that a sink refused for good, with its reason."""
