# SPDX-License-Identifier: Apache-2.0
"""Requests with an idempotency key."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, DateTime, Integer, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import JSONB, UUID

from gateway.db.schema.base import metadata, now

idempotency = Table(
    "idempotency",
    metadata,
    Column("scope", LargeBinary, primary_key=True),
    Column("body_digest", LargeBinary, nullable=False),
    Column("attempt", UUID(as_uuid=True), nullable=False),
    Column("actor_id", Text, nullable=False),
    Column("operation", Text, nullable=False),
    Column("status", Integer),
    Column("detail", JSONB),
    Column("written_in", BigInteger),
    now("created_at"),
    Column("expires_at", DateTime(timezone=True), nullable=False, index=True),
)
"""Requests with an idempotency key. A request runs while `status` is null; else its transaction is `written_in`."""
