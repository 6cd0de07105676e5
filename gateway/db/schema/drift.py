# SPDX-License-Identifier: Apache-2.0
"""The position of the drift watch in OpenFGA's change feed."""

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
"""One row: the process that reads OpenFGA's change feed, and its position (`drift.py`).

`seen_until` is a time of OpenFGA's clock, the others are of the database's clock.
"""
