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
    # The private key is with the other secrets: the same keys encrypt it, and rotation includes it.
    Column("secret_id", UUID(as_uuid=True), ForeignKey("secrets.id"), nullable=False),
    now("created_at"),
    Column("signs_until", DateTime(timezone=True), nullable=False),
    Column("verifies_until", DateTime(timezone=True), nullable=False),
)
"""A key signs until `signs_until`, and verifies until `verifies_until`, when the last token that it signed has
expired.
"""
