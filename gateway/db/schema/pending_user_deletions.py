# SPDX-License-Identifier: Apache-2.0
"""Users who were deleted and of whose last changes nobody knows yet that all have ended."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

from gateway.db.schema.base import metadata, now

departures = Table(
    "departures",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("deleted_by", Text, nullable=False),
    now("deleted_at"),
    now("in_force_at", nullable=True),
)
"""Written with the deletion, and gone when what the user made at that moment is swept (`user_deletion_cleanup.py`).
`in_force_at`
is a moment at which the deletion was in force everywhere: what the user made later is by rights they have anew.
"""
