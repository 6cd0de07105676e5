# SPDX-License-Identifier: Apache-2.0
"""The tables of users and applications, roles, users and groups that identity providers maintain by SCIM, and deleted
users.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata, now, search_key

users = Table(
    "users",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("email", Text),
    Column("user_type", Text, nullable=False),
    now("created_at"),
    now("updated_at", nullable=True),
    Column("last_updated_with", Text, nullable=False),
    Column("verified_email", Text),
    search_key(
        "searchable(lower(regexp_replace(normalize(name, NFKD), '[^ ]*@[^ ]*'::text, ' '::text, 'g'::text)"
        " || ' '::text || coalesce(verified_email, ''::text) || ' '::text || id))"
    ),
    search_key("searchable(lower(coalesce(verified_email, ''::text) || ' '::text || id))", name="address_key"),
)
"""`email` is for display. `verified_email` is the address that a provider verified or a directory (SCIM) gave.

Only the verified address is searched. `search_key` leaves out words of the name that look like an address, because
users set their names. A search for an address uses `address_key` only (`search.sql`).
"""


roles = Table(
    "roles",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("project_id", Text, ForeignKey("projects.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("description", Text),
    Column("provider_id", Text, nullable=False),
    Column("source_id", Text, nullable=False),
    search_key("searchable(name_key)"),
    now("created_at"),
    now("updated_at", nullable=True),
    UniqueConstraint("project_id", "name_key"),
    UniqueConstraint("project_id", "provider_id", "source_id"),
    # Groups of a token are looked up in all projects in one call.
    Index("roles_by_source", "provider_id", "source_id"),
)


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


pending_user_deletions = Table(
    "departures",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("deleted_by", Text, nullable=False),
    now("deleted_at"),
    now("in_force_at", nullable=True),
)
"""A row is inserted with the deletion and deleted after the cleanup (`user_deletion_cleanup.py`).

`in_force_at` is a time at which the deletion was in force everywhere. Later grants of the user come from new rights.
"""
