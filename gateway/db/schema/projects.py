# SPDX-License-Identifier: Apache-2.0
"""Projects."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

from gateway.db.schema.base import metadata, now

projects = Table(
    "projects",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("name_key", Text, nullable=False, unique=True),
    now("created_at"),
)
