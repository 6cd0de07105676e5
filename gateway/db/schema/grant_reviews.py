# SPDX-License-Identifier: Apache-2.0
"""The table of decisions of reviews: a reviewer certifies or revokes a grant that exists."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, Identity, Index, Table, Text

from gateway.db.schema.base import metadata, now

grant_reviews = Table(
    "grant_reviews",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("privilege", Text, nullable=False),
    Column("principal_type", Text, nullable=False),
    Column("principal_id", Text, nullable=False),
    Column("object_type", Text, nullable=False),
    Column("object_id", Text, nullable=False),
    Column("decision", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("decided_by", Text, nullable=False),
    now("decided_at"),
    CheckConstraint("decision in ('certified', 'revoked')", name="decision"),
    Index(None, "object_type", "object_id", "id"),
)
"""Decisions about grants. A decision concerns the grants of all grantors of a privilege to a principal on an object.

Rows never change.
"""
