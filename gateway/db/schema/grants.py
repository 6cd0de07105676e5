# SPDX-License-Identifier: Apache-2.0
"""The tables of live grants and of ended grants."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Identity,
    Index,
    Table,
    Text,
    UniqueConstraint,
    func,
    literal_column,
)
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata, now

grants = Table(
    "grants",
    metadata,
    Column("id", UUID(as_uuid=True), primary_key=True),
    Column("privilege", Text, nullable=False),
    Column("principal_type", Text, nullable=False),
    Column("principal_id", Text, nullable=False),
    Column("object_type", Text, nullable=False),
    Column("object_id", Text, nullable=False),
    Column("granted_by", Text, nullable=False),
    now("granted_at"),
    Column("reason", Text),
    Column("expires_at", DateTime(timezone=True)),
    Column("acts_for", Text),
    UniqueConstraint(
        "privilege", "principal_type", "principal_id", "object_type", "object_id", "granted_by", name="grants_key"
    ),
    Index(None, "object_type", "object_id", "id"),
    Index(None, "principal_type", "principal_id", "id"),
)
"""Grants with their principal, object and grantor. `acts_for` are the limits of a grant of `delegate` as JSON
(`gateway.access.delegate_grants`), null for the default. Rows that differ only in `granted_by` become one tuple in
OpenFGA.
"""

Index(
    "grants_on_columns_idx",
    func.split_part(grants.c.object_id, literal_column("'.'"), literal_column("1")),
    grants.c.principal_type,
    grants.c.principal_id,
    postgresql_where=grants.c.object_type == "column",
)
"""By table: a column's id is its table's id, a dot and the field id (`gateway.access.nouns.refs.column_key`)."""

# The holders of a privilege on an object, in order. Lists of access read a page of them.
Index(
    "grants_holders_idx",
    *(grants.c[name] for name in ("object_type", "object_id", "privilege", "principal_type", "principal_id")),
    postgresql_include=["expires_at"],
)
Index("grants_ending_idx", grants.c.expires_at, postgresql_where=grants.c.expires_at.is_not(None))

Index(
    "grants_roles_of_principal_idx",
    grants.c.principal_type,
    grants.c.principal_id,
    postgresql_where=grants.c.object_type == "role",
)

Index(
    "grants_ends_of_principal_idx",
    grants.c.principal_type,
    grants.c.principal_id,
    grants.c.expires_at,
    postgresql_where=grants.c.expires_at.is_not(None),
)

grant_history = Table(
    "grant_history",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("grant_id", UUID(as_uuid=True), nullable=False),
    Column("privilege", Text, nullable=False),
    Column("principal_type", Text, nullable=False),
    Column("principal_id", Text, nullable=False),
    Column("object_type", Text, nullable=False),
    Column("object_id", Text, nullable=False),
    Column("granted_by", Text, nullable=False),
    Column("granted_at", DateTime(timezone=True), nullable=False),
    Column("reason", Text),
    Column("expires_at", DateTime(timezone=True)),
    Column("acts_for", Text),
    now("ended_at"),
    Column("ended_by", Text),
    Column("ended_because", Text, nullable=False),
    CheckConstraint(
        "ended_because in ('revoked', 'expired', 'object deleted', 'principal deleted', 'replaced')",
        name="ended_because",
    ),
    Index(None, "object_type", "object_id", "id"),
    Index(None, "principal_type", "principal_id", "id"),
)
"""Ended grants: the row of `grants`, and when, by whom and why it ended. Rows never change."""
