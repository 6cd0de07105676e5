# SPDX-License-Identifier: Apache-2.0
"""How far OpenFGA has been watched."""

from __future__ import annotations

from sqlalchemy import Boolean, CheckConstraint, Column, DateTime, Table, Text
from sqlalchemy.dialects.postgresql import UUID

from gateway.db.schema.base import metadata

drift_watch = Table(
    "drift_watch",
    metadata,
    Column("singleton", Boolean, primary_key=True, server_default="true"),
    Column("holder", UUID(as_uuid=True)),
    Column("held_until", DateTime(timezone=True)),
    Column("store_id", Text),
    Column("seen_until", DateTime(timezone=True)),
    Column("last_change", Text),
    Column("compare_all", Boolean, nullable=False, server_default="false"),
    CheckConstraint("singleton", name="one_row"),
)
"""One row: which process watches OpenFGA's change feed, and how far it has read (`drift.py`). `seen_until` is by
OpenFGA's clock, the other times by the database's.
"""
