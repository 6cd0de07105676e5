# SPDX-License-Identifier: Apache-2.0
"""The keys of the gateway's own tokens."""

from __future__ import annotations

from sqlalchemy import Column, DateTime, ForeignKey, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata, now

signing_keys = Table(
    "signing_keys",
    metadata,
    Column("kid", Text, primary_key=True),
    Column("public", LargeBinary, nullable=False),
    # The private half lies with the other secrets: it is sealed with the same keys and changes them with them.
    Column("secret_id", UUID(as_uuid=True), ForeignKey("secrets.id"), nullable=False),
    now("created_at"),
    Column("signs_until", DateTime(timezone=True), nullable=False),
    Column("verifies_until", DateTime(timezone=True), nullable=False),
)
"""A key signs until one time and verifies until a later one: when the last token it signed has ended."""
