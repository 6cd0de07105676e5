# SPDX-License-Identifier: Apache-2.0
"""Users, groups and tokens of identity providers that use SCIM."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata, now

scim_users = Table(
    "scim_users",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, unique=True),
    Column("provider_id", Text, nullable=False),
    Column("user_name", Text, nullable=False),
    Column("user_name_key", Text, nullable=False),
    Column("external_id", Text),
    Column("active", Boolean, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("version", Integer, nullable=False, server_default="1"),
    now("created_at"),
    now("updated_at"),
    UniqueConstraint("provider_id", "user_name_key"),
    UniqueConstraint("provider_id", "external_id"),
)
"""A user as the provider sent it. `id` is SCIM's, `user_id` the gateway's. `document` (JSON) has descriptive
attributes.

The door refuses a user that is not `active`, and the user's grants have no effect.
"""

scim_groups = Table(
    "scim_groups",
    metadata,
    Column("role_id", UUID(as_uuid=True), ForeignKey("roles.id", ondelete="CASCADE"), primary_key=True),
    Column("provider_id", Text, nullable=False),
    Column("external_id", Text),
    Column("version", Integer, nullable=False, server_default="1"),
    now("created_at"),
    now("updated_at"),
)
"""Roles that are groups of a provider, which alone sets their name, source and members."""

scim_tokens = Table(
    "scim_tokens",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("provider_id", Text, nullable=False),
    Column("project_id", Text, ForeignKey("projects.id", ondelete="CASCADE"), nullable=False),
    Column("digest", LargeBinary, nullable=False),
    now("created_at"),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Column("revoked_at", DateTime(timezone=True)),
    CheckConstraint("length(digest) = 32", name="digest"),
)
"""SHA-256 digests of the tokens that providers send; the tokens are not stored. Rows of revoked tokens are kept."""
