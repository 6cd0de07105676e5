# SPDX-License-Identifier: Apache-2.0
"""Deleted users whose cleanup is pending."""

from __future__ import annotations

from sqlalchemy import Column, Table, Text

from gateway.db.schema.base import metadata, now

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
