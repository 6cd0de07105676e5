# SPDX-License-Identifier: Apache-2.0
"""Encrypted storage credentials."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, Index, LargeBinary, Table, Text, text
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata, now

secrets = Table(
    "secrets",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    # Null while the credential lies in another store, and between the reservation of an id and its first write.
    Column("sealed", LargeBinary),
    now("created_at"),
    Column("replaced_at", DateTime(timezone=True)),
    Column("store", Text, nullable=False, server_default="postgres"),
    Index("secrets_replaced_idx", "replaced_at", postgresql_where=text("replaced_at is not null")),
)
"""Storage credentials (`db/stored_secrets.py`). A new credential is a new row.

`store` is the name of the secret store that holds the content; `postgres` holds it encrypted in `sealed`. A credential
that no warehouse uses is kept, from `replaced_at` on, for requests in flight, and for a transaction that begins to use
it.
"""
