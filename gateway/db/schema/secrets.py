# SPDX-License-Identifier: Apache-2.0
"""Encrypted storage credentials."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, Index, LargeBinary, Table, text
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata, now

secrets = Table(
    "secrets",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("sealed", LargeBinary, nullable=False),
    now("created_at"),
    Column("replaced_at", DateTime(timezone=True)),
    Index("secrets_replaced_idx", "replaced_at", postgresql_where=text("replaced_at is not null")),
)
"""Encrypted storage credentials (`db/secrets.py`). A new credential is a new row.

A credential that no warehouse uses any more is kept, from `replaced_at` on, for requests in flight.
"""
