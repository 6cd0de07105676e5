# SPDX-License-Identifier: Apache-2.0
"""People and applications."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

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
    search_key("searchable(lower((name || ' '::text) || coalesce(email, ''::text) || ' '::text || id))"),
)
